"""Signing secrets that the deployed rotator replaces while deliveries go on.

The emulator calls no function of a rotation, so the tests take the part of Secrets Manager: they label
a version as the pending one, and have each step taken.
"""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

import calls
from faults import OUTAGE, Weather
from person import Person
from rotating import STEPS, begin, event, take
from simulated import EVENTS, KEY
from stack import REPOSITORY
from steady import Steady
from waiting import wait_until

# Seconds, for a handful of jobs.
SETTLED_WITHIN = 60


class Rotation:
    """All signing secrets rotated, each step taken more than once, while jobs finish."""

    def __init__(self, world):
        self.world = world
        self.person = world.person = Person(world, {})
        self.secrets = world.emulator.client("secretsmanager")
        world.stack.put_secret(world.output("ApiKeySecretId"), KEY)
        self.person.gleaner("webhooks", "ensure", "--url", world.stack.url())
        self.before = {kind: self.value(kind)["webhook_id"] for kind in EVENTS}
        self.killed = []
        ways = (self.twice, self.at_once, self.killed_in_the_middle)
        with Steady(world) as steady:
            self.versions = {
                kind: self.rotate(kind, way) for kind, way in zip(EVENTS, ways, strict=True)
            }
        self.jobs = steady.jobs
        wait_until("all deliveries", lambda: not world.simulator.pending(), SETTLED_WITHIN)
        world.wait_until_settled(SETTLED_WITHIN, world.tick)
        self.counts = calls.counted(world)

    def twice(self, step):
        for _ in range(2):
            self.world.invoke("rotator", step)

    def at_once(self, step):
        # The second may end because the first is at it; it is tried again.
        with ThreadPoolExecutor(2) as both:
            list(both.map(take, [self.world] * 2, [step] * 2))

    def killed_in_the_middle(self, step):
        first = len(self.killed) + 1
        self.world.kill({"rotator": {"low": first, "high": first + 3, "times": 1}})
        take(self.world, step)
        self.killed.append(self.world.killed()["rotator"])
        self.world.kill({})

    def value(self, kind):
        """The current signing secret."""
        secret = self.world.secret_of(kind)
        return json.loads(self.secrets.get_secret_value(SecretId=secret)["SecretString"])

    def rotate(self, kind, way):
        secret = self.world.secret_of(kind)
        version = begin(self.world, secret)
        for step in STEPS:
            way(event(secret, version, step))
        return version

    def webhooks(self):
        listed = self.world.simulator.ask("GET", "/v1/webhooks?page_size=100")["items"]
        return {webhook["id"]: webhook for webhook in listed}

    def labels(self, kind):
        described = self.secrets.describe_secret(SecretId=self.world.secret_of(kind))
        return described["VersionIdsToStages"]


@pytest.fixture(scope="module")
def rotation(make_world):
    return Rotation(make_world(parameters={"LogLevel": "trace"}))


def refused(world):
    """Jobs of which a delivery was answered, and not accepted."""
    hooks = world.simulator.ask("GET", "/v1/webhooks?page_size=100")["items"]
    rows = [row for hook in hooks for row in world.simulator.deliveries(hook["id"])]
    return {row["job_id"] for row in rows if (row["http_status"] or 200) >= 300}


# SM-04, SM-07
def test_each_secret_has_a_successor(rotation):
    for kind in EVENTS:
        labels = rotation.labels(kind)
        assert "AWSCURRENT" in labels[rotation.versions[kind]], labels
        assert rotation.value(kind)["webhook_id"] != rotation.before[kind]


# SM-08
def test_each_new_webhook_delivers_and_each_old_one_is_switched_off(rotation):
    webhooks = rotation.webhooks()
    assert len(webhooks) == 2 * len(EVENTS)
    for kind, event in EVENTS.items():
        new, old = webhooks[rotation.value(kind)["webhook_id"]], webhooks[rotation.before[kind]]
        assert (new["is_active"], old["is_active"]) == (True, False)
        assert new["event_type"] == old["event_type"] == event
        assert new["url"] == old["url"] == rotation.world.stack.url()
    [row] = rotation.world.items("control#retirements")
    assert all(webhook in json.dumps(row) for webhook in rotation.before.values())


# SM-02: no delivery is refused, whichever step came before it.
def test_no_delivery_is_refused_and_every_job_is_stored(rotation):
    assert refused(rotation.world) == set()
    assert len(rotation.world.rows()) == len(rotation.jobs)
    assert set(rotation.world.rows().values()) == {"stored"}


def test_each_step_was_killed_once_and_taken_again(rotation):
    assert len(rotation.killed) == len(STEPS)
    assert all(rotation.killed)


def test_a_secret_that_is_not_the_rotators_is_refused(rotation):
    secret = rotation.world.output("ApiKeySecretId")
    with pytest.raises(AssertionError, match="not among those"):
        rotation.world.invoke("rotator", event(secret, str(uuid.uuid4()), STEPS[0]))


def test_each_right_is_used_and_none_is_missing(rotation):
    assert rotation.world.proxy.denied() == []
    asked = {operation for function, _, operation, _ in rotation.counts if function == "rotator"}
    rights = json.loads((REPOSITORY / "docs/iam.json").read_text(encoding="utf-8"))["roles"]
    for right in rights["rotator"]:
        assert "calls" not in right or asked.intersection(right["calls"]), right


# OB-01: not at the most talkative level either.
def test_no_log_tells_a_secret(rotation):
    told = "\n".join(rotation.world.logs("rotator"))
    assert "rotation step taken" in told
    for word in (KEY, "whsec_", *(rotation.value(kind)["secret"] for kind in EVENTS)):
        assert word not in told


# In place the old secret is worth nothing from one moment on; what is refused is replayed.
def test_what_a_rotation_in_place_has_refused_is_replayed_by_one_tick(make_world):
    world = make_world(parameters={"RotationStrategy": "in-place"})
    world.restart("scheduler", GLEANER_RECONCILE_THRESHOLD="1s")
    person = world.person = Person(world, {})
    world.stack.put_secret(world.output("ApiKeySecretId"), KEY)
    person.gleaner("webhooks", "ensure", "--url", world.stack.url())
    secret = world.secret_of("extract")
    weather = Weather(world)
    with Steady(world) as steady:
        wait_until("a first job", world.rows, SETTLED_WITHIN)
        # The receivers do not learn of the new secret, so that some are refused for certain.
        weather.change({"receiver": OUTAGE["receiver"]})
        version = begin(world, secret)
        for step in STEPS:
            take(world, event(secret, version, step))
        wait_until("a refused delivery", lambda: refused(world), SETTLED_WITHIN)
    wait_until("the end of all jobs", lambda: not open_at_platform(world), SETTLED_WITHIN)
    # Nothing is delivered any more.
    for hook in world.simulator.ask("GET", "/v1/webhooks")["items"]:
        world.simulator.ask("PATCH", f"/v1/webhooks/{hook['id']}", {"is_active": False})
    lost = {job for job in refused(world) if ("extract", job) not in world.rows()}
    assert lost
    weather.change({})
    world.tick()
    world.wait_until_settled(SETTLED_WITHIN, lambda: None)
    assert {world.rows()["extract", job] for job in steady.jobs} == {"stored"}


def open_at_platform(world):
    return [job for job in world.jobs() if job["status"] in ("queued", "processing")]
