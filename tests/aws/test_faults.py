"""The same with services that fail and functions that are killed, and a secret rotated meanwhile.

Answers are lost after the effect, calls throttled and answered 500, services down; functions are ended
by SIGKILL at calls of theirs.
"""

import datetime
import json

import pytest

import calls
from faults import FAULTS, OUTAGE, Weather
from person import STRICT_AUDIT
from rotating import STEPS, begin, event, take
from run import Run
from stack import REPOSITORY
from waiting import wait_until
from world import key_of

# Seconds. The functions start anew in one or two.
NOTICED_WITHIN = 30
# How long something may be on its way before somebody looks, how long between two looks, when a job
# list can prove that a job was not accepted, and how long a worker that has ended may hold a batch:
# seconds in place of minutes, so that hours of a bad day pass in a minute.
GRACE = {"GLEANER_LIMITS_ENQUEUE_GRACE": "5s"}
ANNOUNCED = {"GLEANER_LIMITS_ANNOUNCE_GRACE": "10s"}
POSTED = {
    "GLEANER_LIMITS_ADOPTION_MARGIN": "4s",
    "GLEANER_LIMITS_BACKOFF_CAP": "2s",
    "GLEANER_LIMITS_POST_BEGIN": "2s",
    "GLEANER_LIMITS_POST_TIMEOUT": "3s",
}
SHORTENED = {
    "receiver": GRACE,
    "worker": {
        **GRACE,
        **ANNOUNCED,
        **POSTED,
        "GLEANER_LIMITS_PAGE_TIMEOUT": "5s",
        "GLEANER_LIMITS_RUN_CLAIM": "10s",
    },
    "scheduler": {
        **GRACE,
        **ANNOUNCED,
        **POSTED,
        "GLEANER_LIMITS_SWEEP_SPACING": "5s",
        "GLEANER_LIMITS_SWEEP_SPACING_CAP": "5s",
        "GLEANER_RECONCILE_THRESHOLD": "10s",
    },
}
# A finished batch or crawl keeps its tokens for two seconds, and is put off until then.
SETTLE_SECS = 40.0
# What goes wrong at the platform.
PLATFORM = {
    "api": {"errors": 0.03, "lost_answers": 0.04},
    "deliveries": {"dropped": 0.1, "repeated": 0.1},
    "jobs": {"fail_retryable": 0.15, "fail_final": 0.03, "cancelled": 0.03},
}
# Calls between two kills, and how many processes are killed for each hundred jobs.
KILLED = {
    "receiver": {"low": 15, "high": 45, "times": 4},
    "worker": {"low": 25, "high": 60, "times": 5},
    "scheduler": {"low": 15, "high": 60, "times": 3},
    "rotator": {"low": 3, "high": 7, "times": 2},
}
# Whose work grows with the jobs.
BUSY = ("receiver", "worker")
# The shortest interval of the template, and as much again.
SCHEDULED_WITHIN = 120


class Rough(Run):
    """A run that begins without secrets and goes on in bad weather."""

    def __init__(self, world, jobs):
        self.ticks = 0
        self.share = max(1, jobs // 100)
        super().__init__(world, jobs, **ANNOUNCED, **POSTED)
        self.weather.count()

    def submit(self, plan):
        self.world.simulator.ask("PATCH", "/sim/faults", PLATFORM)
        self.weather = Weather(self.world)
        self.weather.change(OUTAGE)
        for function, variables in SHORTENED.items():
            self.world.restart(function, **variables)
        # The worker begins without its key; nobody has sent it a task yet.
        self.world.invoke("worker", {"Records": []})
        self.submit_pages(plan)
        wait_until("a delivery that is put off", self.is_noticed, NOTICED_WITHIN)
        self.weather.change(FAULTS)
        self.world.kill(
            {
                # One rotation, and one run of the scheduler at a time, however many jobs there are:
                # a run that was killed holds its claim for a minute.
                name: {**it, "times": it["times"] * (self.share if name in BUSY else 1)}
                for name, it in KILLED.items()
            }
        )
        self.rotate(self.world.secret_of("extract"))
        self.submit_parents(plan)

    def rotate(self, secret):
        """Replaces a signing secret while deliveries come."""
        version = begin(self.world, secret)
        self.tries = {step: take(self.world, event(secret, version, step)) for step in STEPS}
        described = self.world.emulator.client("secretsmanager").describe_secret(SecretId=secret)
        self.is_rotated = "AWSCURRENT" in described["VersionIdsToStages"][version]

    def webhooks(self):
        return [hook["id"] for hook in self.world.simulator.ask("GET", "/v1/webhooks")["items"]]

    def is_noticed(self):
        attempts = [row for hook in self.webhooks() for row in self.world.simulator.deliveries(hook)]
        return any(row["http_status"] == 503 for row in attempts)

    def settle(self):
        super().settle()
        self.killed = self.world.killed()
        self.world.kill({})
        self.world.simulator.ask("POST", "/sim/faults", "none")
        wait_until("the ledger to know all jobs", self.knows_all, self.within, pause=1.0)
        super().settle()
        [self.audit] = self.person.listed("audit", *STRICT_AUDIT)
        # What the platform would deliver once more would come minutes later.
        self.person.gleaner("webhooks", "delete", *self.webhooks())
        super().settle()

    def knows_all(self):
        """Whether strangers' jobs whose deliveries were lost have been found as well."""
        self.meanwhile()
        return {key_of(job) for job in self.world.jobs()} <= self.world.rows().keys()

    def meanwhile(self):
        self.ticks += 1
        # It may be killed in the middle.
        self.world.attempt("scheduler", {})


@pytest.fixture(scope="module")
def run(make_world, jobs, tell):
    run = Rough(make_world(settle_secs=SETTLE_SECS), jobs)
    struck = [(name, str(count), "") for name, count in run.weather.struck.items()]
    struck += [(f"{name}: killed", str(count), "") for name, count in run.killed.items()]
    tell(run.sheet("with failing services", struck, calls.table(run.counts)))
    return run


# DQ-01, DQ-02, DQ-04, WK-02, WK-14: by whatever call, for whichever function.
def test_nothing_is_lost_stored_twice_or_paid_twice(run):
    assert run.is_balanced(), run.judgement
    assert run.judgement["stored"] == run.finished()
    assert len(run.rows) == len(run.jobs)


def test_the_audit_finds_nothing(run):
    assert run.audit["balances"], run.audit
    # Lists may lag behind jobs, such as new tries, that were made moments before.
    [fresh] = run.audit["unproved"]
    assert fresh["because"] == "too_fresh", run.audit
    proved = [job for job in run.jobs if instant(job["submitted_at"]) < instant(fresh["from"])]
    assert sum(kind["listed"] for kind in run.audit["jobs"].values()) == len(proved)


def instant(text):
    return datetime.datetime.fromisoformat(text)


def test_the_secret_was_replaced_meanwhile(run):
    assert run.is_rotated


def test_each_fault_has_struck(run):
    idle = {name for name, count in run.weather.struck.items() if not count}
    idle |= {name for name in KILLED if not run.killed[name]}
    assert not idle


def test_each_right_is_used_and_none_is_missing(run):
    assert run.world.proxy.denied() == []
    asked = {(function, operation) for function, _, operation, _ in run.counts}
    rights = json.loads((REPOSITORY / "docs/iam.json").read_text(encoding="utf-8"))["roles"]
    idle = [
        (function, right["action"])
        for function in ("receiver", "worker", "scheduler")
        for right in rights[function]
        if "calls" in right and not any((function, call) in asked for call in right["calls"])
    ]
    assert not idle


# WK-06
def test_no_task_is_a_dead_letter(run):
    assert run.world.depth("DeadLetterQueueUrl") == 0


def test_the_schedule_runs_the_scheduler_by_itself(run):
    wait_until(
        "a run by the schedule",
        lambda: run.world.invocations("scheduler") > run.ticks + 1,
        SCHEDULED_WITHIN,
    )
