"""The platform: `gleaner simulate` as a process, its API and its control plane."""

import json
import subprocess

import urllib3

from waiting import wait_until

# Opens nothing but a simulator on this machine.
KEY = "key-of-the-tests"
EVENTS = {"extract": "extract_completed", "batch": "batch_completed", "crawl": "crawl_completed"}

# Seconds. None takes a tenth of them on an idle machine.
STARTED_WITHIN = 30
STOPPED_WITHIN = 15
CALL_WITHIN = 30
# Of a submission or a read; the platform may be told to refuse some.
TRIES_MAX = 20
# Pages of one delivery log.
LOG_PAGES_MAX = 100
# How long the platform waits for a receiver. It is the emulator that is slow, not the receiver.
DELIVERED_WITHIN = 10
# Deliveries at once. More of them would wait for the emulator and for nothing else.
DELIVERIES = 4


class Simulator:
    """A running simulator whose jobs take a second or two."""

    def __init__(self, binary, folder, speed=20.0, **settings):
        self.speed = speed
        config = {
            "api_key": KEY,
            "speed": speed,
            "settle_secs": 0.0,
            "webhooks": {"concurrency": DELIVERIES, "timeout_secs": DELIVERED_WITHIN * speed},
            **settings,
        }
        file = folder / "simulator.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        self.http = urllib3.PoolManager(retries=False, timeout=CALL_WITHIN)
        command = [binary, "simulate", "--listen", "127.0.0.1:0", "--json", "--end-with-stdin"]
        with open(folder / "simulator.out", "wb") as output:
            self.process = subprocess.Popen(
                [*command, "--config", file], stdin=subprocess.PIPE, stdout=output
            )
        try:
            self.url = json.loads(
                wait_until(
                    "the simulator",
                    lambda: (folder / "simulator.out").read_text(encoding="utf-8").strip(),
                    STARTED_WITHIN,
                )
            )["url"]
        except BaseException:
            self.stop()
            raise

    def ask(self, method, path, body=None, expected=200):
        """Calls the API, and checks the status. A read is tried again."""
        for _ in range(TRIES_MAX if method == "GET" else 1):
            answer = self.send(method, path, body)
            if answer.status == expected:
                break
        assert answer.status == expected, (method, path, answer.status, answer.data)
        return answer.json() if answer.data else None

    def send(self, method, path, body):
        return self.http.request(method, self.url + path, json=body, headers={"x-api-key": KEY})

    def register(self, kind, url):
        """Registers a webhook; returns its id and its signing secret."""
        wanted = {"url": url, "event_type": EVENTS[kind]}
        made = self.ask("POST", "/v1/webhooks", wanted, expected=201)
        return made["id"], made["secret"]

    def rotate(self, webhook):
        """Has the platform sign with a new secret; returns it."""
        return self.ask("POST", f"/v1/webhooks/{webhook}/rotate-secret")["secret"]

    def deliveries(self, webhook):
        """The delivery log of a webhook."""
        rows = []
        for page in range(1, LOG_PAGES_MAX + 1):
            path = f"/v1/webhooks/{webhook}/deliveries?page={page}&page_size=100"
            found = self.ask("GET", path)["items"]
            rows += found
            if not found:
                break
        return rows

    def submit(self, url):
        """Submits one page past the ledger, which learns of it by its delivery alone.

        Returns the job's id, or nothing if the answer was lost: that is nobody's loss here.
        """
        body = {"url": url, "formats": ["html", "markdown"], "processing_mode": "async"}
        for _ in range(TRIES_MAX):
            try:
                answer = self.send("POST", "/v1/extract", body)
            except urllib3.exceptions.HTTPError:
                return None
            if answer.status == 202:
                return answer.json()["job_id"]
        raise AssertionError(f"{url}: {answer.status}")

    def books(self):
        """What became of every job, page by page."""
        pages, after = [], 0
        while after is not None:
            pages.append(self.ask("GET", f"/sim/books?detail=parts&after={after}"))
            after = pages[-1]["next"]
        return pages

    def pending(self):
        """Deliveries that the platform still means to attempt."""
        return self.ask("GET", "/sim/counters")["pending_attempts"]

    def stop(self):
        """Closes its standard input, upon which it ends by itself."""
        self.http.clear()
        self.process.stdin.close()
        try:
            self.process.wait(STOPPED_WITHIN)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
