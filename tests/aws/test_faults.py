"""The same with services that fail: answers lost after the effect, throttling, errors, an outage."""

import json

import pytest

import calls
from faults import FAULTS, OUTAGE, Weather
from run import Run
from stack import FUNCTIONS, REPOSITORY
from waiting import wait_until

# Seconds. The functions start anew in one or two.
NOTICED_WITHIN = 30
# How long something may be on its way before the sweep looks, and how long between two looks: in
# place of minutes, so that hours of a bad day pass in a minute.
GRACE = {"GLEANER_LIMITS_ENQUEUE_GRACE": "5s"}
SHORTENED = {
    "receiver": GRACE,
    "worker": {**GRACE, "GLEANER_LIMITS_BACKOFF_CAP": "5s"},
    "scheduler": {
        **GRACE,
        "GLEANER_LIMITS_SWEEP_SPACING": "5s",
        "GLEANER_LIMITS_SWEEP_SPACING_CAP": "10s",
    },
}
# The shortest interval of the template, and as much again.
SCHEDULED_WITHIN = 120


class Rough(Run):
    """A run that begins without secrets and goes on in bad weather."""

    def __init__(self, world, jobs):
        self.weather = Weather(world)
        self.ticks = 0
        super().__init__(world, jobs)
        self.weather.count()

    def submit(self, plan):
        self.weather.change(OUTAGE)
        for function, variables in SHORTENED.items():
            self.world.restart(function, **variables)
        # The worker begins without its key; nobody has sent it a task yet.
        self.world.invoke("worker", {"Records": []})
        self.submit_pages(plan)
        wait_until("a delivery that is put off", self.is_noticed, NOTICED_WITHIN)
        self.weather.change(FAULTS)
        self.submit_parents(plan)

    def is_noticed(self):
        attempts = self.world.simulator.deliveries(self.world.webhooks["extract"])
        return any(row["http_status"] == 503 for row in attempts)

    def meanwhile(self):
        self.ticks += 1
        self.world.tick()


@pytest.fixture(scope="module")
def run(make_world, jobs, tell):
    # A finished batch or crawl keeps its tokens for two seconds: the worker puts it off.
    run = Rough(make_world(settle_secs=40.0), jobs)
    struck = [(name, str(count), "") for name, count in run.weather.struck.items()]
    tell(run.sheet("with failing services", struck, calls.table(run.counts)))
    return run


def test_nothing_is_lost_stored_twice_or_paid_twice(run):
    assert run.is_balanced(), run.judgement
    assert run.judgement["stored"] == len(run.jobs)
    assert set(run.rows.values()) == {"stored"}


def test_each_fault_has_struck(run):
    idle = {name for name, count in run.weather.struck.items() if not count}
    assert not idle


def test_each_right_is_used_and_none_is_missing(run):
    assert run.world.proxy.denied() == []
    asked = {(function, operation) for function, _, operation, _ in run.counts}
    rights = json.loads((REPOSITORY / "docs/iam.json").read_text(encoding="utf-8"))["roles"]
    idle = [
        (function, right["action"])
        for function in FUNCTIONS
        for right in rights[function]
        if "calls" in right and not any((function, call) in asked for call in right["calls"])
    ]
    assert not idle


def test_no_task_is_a_dead_letter(run):
    assert run.world.depth("DeadLetterQueueUrl") == 0


def test_the_schedule_runs_the_scheduler_by_itself(run):
    wait_until(
        "a run by the schedule",
        lambda: run.world.invocations("scheduler") > run.ticks + 1,
        SCHEDULED_WITHIN,
    )
