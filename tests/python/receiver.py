"""A small webhook receiver on loopback."""

import http.server
import queue
import threading
from dataclasses import dataclass

# Seconds that a delivery may take to arrive.
ARRIVES_WITHIN = 30
# Seconds between two looks whether to close.
CLOSES_WITHIN = 0.02
# Largest body taken, in bytes.
BODY_BYTES_MAX = 16 * 1024 * 1024


@dataclass
class Delivery:
    """One attempt as it arrived: headers with the sender's casing, raw body."""

    headers: list
    body: bytes

    def header(self, name):
        [value] = [value for given, value in self.headers if given == name]
        return value


class Receiver:
    """Keeps what arrives and answers with the statuses given, the last of them for ever."""

    def __init__(self, *statuses):
        self.deliveries = queue.Queue()
        self.statuses = list(statuses or [202])
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                assert length <= BODY_BYTES_MAX
                body = self.rfile.read(length)
                statuses = receiver.statuses
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                self.send_header("Content-Length", "0")
                self.end_headers()
                receiver.deliveries.put(Delivery(self.headers.items(), body))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=[CLOSES_WITHIN])
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/webhook?token=a%20b"

    def next(self):
        return self.deliveries.get(timeout=ARRIVES_WITHIN)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
