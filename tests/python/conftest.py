"""Fixtures: the built program, simulators on loopback, and one demo run with real documents."""

import json
import os
import pathlib
import select
import subprocess
from dataclasses import dataclass

import pytest
import urllib3

from corpus import write_corpus

KEY = "python-tests-key"
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# Seconds. Nothing here takes a tenth of them on an idle machine.
START_WITHIN = 30
STOP_WITHIN = 15
DEMO_WITHIN = 150
CALL_WITHIN = 30

# Jobs end at once, lists and tokens do not lag: no test has to wait.
INSTANT = {
    "api_key": KEY,
    "speed": 1000.0,
    "job_median_secs": 0.0,
    "list_lag_secs": 0.0,
    "settle_secs": 0.0,
}

DEMO_SEED = 3
DEMO_JOBS = 60


class Simulator:
    """A running `gleaner simulate`, with the calls that the official client does not have."""

    def __init__(self, process, url):
        self.process = process
        self.url = url
        self.http = urllib3.PoolManager(retries=False, timeout=CALL_WITHIN)

    def request(self, method, path, body=None, key=KEY):
        """Sends a call past the official client."""
        headers = {} if key is None else {"X-Api-Key": key}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.http.request(method, self.url + path, body=body, headers=headers)

    def backstage(self, method, path, body=None):
        answer = self.request(method, path, body)
        assert answer.status == 200, answer.data
        return json.loads(answer.data)

    def books(self):
        """Reads what became of every job, part by part."""
        jobs, after = [], 0
        while after is not None:
            page = self.backstage("GET", f"/sim/books?detail=parts&after={after}")
            assert page["version"] == 1
            jobs += page["jobs"]
            after = page["next"]
        return jobs

    def counters(self):
        return self.backstage("GET", "/sim/counters")

    def change_faults(self, **groups):
        return self.backstage("PATCH", "/sim/faults", groups)

    def no_faults(self):
        return self.backstage("POST", "/sim/faults", "none")


def start(binary, folder, settings):
    """Starts a simulator and waits for the line that says where it listens."""
    config = folder / "simulator.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    command = [binary, "simulate", "--listen", "127.0.0.1:0", "--json", "--end-with-stdin"]
    process = subprocess.Popen(
        [*command, "--config", str(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    ready, _, _ = select.select([process.stdout], [], [], START_WITHIN)
    line = process.stdout.readline() if ready else b""
    if not line:
        process.kill()
        process.wait()
        raise AssertionError(f"the simulator did not start with {settings}")
    return Simulator(process, json.loads(line)["url"])


def stop(simulator):
    """Closes the simulator's standard input, upon which it ends by itself."""
    simulator.http.clear()
    simulator.process.stdin.close()
    try:
        assert simulator.process.wait(STOP_WITHIN) == 0
    finally:
        if simulator.process.poll() is None:
            simulator.process.kill()
            simulator.process.wait()
        simulator.process.stdout.close()


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("GLEANER_BINARY")
    assert path and os.access(path, os.X_OK), "GLEANER_BINARY must name the built program"
    return path


@pytest.fixture(scope="session")
def start_simulator(binary, tmp_path_factory):
    """Starts simulators by their settings; equal settings share one for the whole session."""
    running = {}

    def get(**settings):
        settings = {**INSTANT, **settings}
        name = json.dumps(settings, sort_keys=True)
        if name not in running:
            running[name] = start(binary, tmp_path_factory.mktemp("simulator"), settings)
        return running[name]

    yield get
    for simulator in running.values():
        stop(simulator)


@pytest.fixture
def fresh_simulator(binary, tmp_path):
    """Starts one simulator for one test, which may change its faults and count its jobs."""
    running = []

    def get(**settings):
        running.append(start(binary, tmp_path, {**INSTANT, **settings}))
        return running[-1]

    yield get
    for simulator in running:
        stop(simulator)


@dataclass
class Demo:
    """A finished `gleaner demo` over real documents."""

    report: dict
    results: pathlib.Path
    corpus: pathlib.Path


@pytest.fixture(scope="session")
def demo(binary, tmp_path_factory):
    """Runs the demo once: extract jobs, batches and crawls, every result a real document."""
    folder = tmp_path_factory.mktemp("demo")
    corpus, kept = folder / "corpus", folder / "kept"
    write_corpus(corpus)
    command = [binary, "demo", "--json", "--faults", "none", "--speed", "100"]
    command += ["--jobs", str(DEMO_JOBS), "--seed", str(DEMO_SEED)]
    command += ["--corpus", str(corpus), "--dir", str(kept)]
    done = subprocess.run(command, capture_output=True, timeout=DEMO_WITHIN, check=False)
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["balanced"], report
    return Demo(report, kept / "results", corpus)
