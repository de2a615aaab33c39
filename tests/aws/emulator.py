"""AWS as this machine plays it: ministack, with every policy enforced."""

import pathlib
import sys
import threading
import urllib.request

import boto3
from botocore.config import Config

import processes
from waiting import wait_until

REGION = "eu-central-1"
ACCOUNT = "000000000000"
# The emulator's own root credentials; they open nothing else.
ROOT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

# Seconds. It starts in one or two.
STARTED_WITHIN = 60


class Emulator:
    """A running emulator; the calls of its functions go to `endpoint`, if one is given."""

    def __init__(self, folder, port, endpoint):
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "emulator.log"
        # Clients may be used by several threads, but not made.
        self.making = threading.Lock()
        temporary = folder / "emulator"
        temporary.mkdir()
        environment = {
            **ROOT,
            # What the functions are given as well: the path, and where they find the services.
            "PATH": "/usr/bin:/bin",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_DEFAULT_REGION": REGION,
            "AUTH": "true",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "HOME": str(temporary),
            "IOT_MTLS_ENABLED": "0",
            "MINISTACK_HOST": "localhost",
            "MINISTACK_REGION": REGION,
            "SFTP_ENABLED": "0",
            "S3_DATA_DIR": str(temporary / "s3"),
            "STATE_DIR": str(temporary / "state"),
            "TMPDIR": str(temporary),
        }
        self.process = processes.start([sys.executable, "-m", "ministack"], self.log, environment)
        try:
            wait_until("the emulator", self.is_ready, STARTED_WITHIN)
        except BaseException:
            self.stop()
            raise

    def is_ready(self):
        assert self.process.poll() is None, tail(self.log)
        try:
            with urllib.request.urlopen(self.url + "/_localstack/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def client(self, service, url=None):
        """A client with the rights of the account's owner."""
        with self.making:
            return boto3.client(
                service,
                endpoint_url=url or self.url,
                region_name=REGION,
                aws_access_key_id=ROOT["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=ROOT["AWS_SECRET_ACCESS_KEY"],
                config=Config(
                    connect_timeout=5,
                    read_timeout=60,
                    retries={"mode": "standard", "total_max_attempts": 3},
                    s3={"addressing_style": "path"},
                ),
            )

    def stop(self):
        """Ends it, and the functions that it leaves behind."""
        processes.stop(self.process)


def tail(log, lines=40):
    """The end of a log."""
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])
