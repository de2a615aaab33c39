"""Signing secrets that the deployed rotator replaces while deliveries go on.

The emulator calls no function of a rotation, so the tests take the part of Secrets Manager: they label
a version as the pending one, and have each step taken.
"""

import json
import uuid

import pytest

import calls
from person import Person
from rotating import STEPS, begin, event
from simulated import EVENTS, KEY
from stack import REPOSITORY
from waiting import wait_until

# Seconds, for a handful of jobs.
SETTLED_WITHIN = 60


class Rotation:
    """All signing secrets rotated, each step taken twice, and a job after each of them."""

    def __init__(self, world):
        self.world = world
        self.person = world.person = Person(world, {})
        self.secrets = world.emulator.client("secretsmanager")
        world.stack.put_secret(world.output("ApiKeySecretId"), KEY)
        self.person.gleaner("webhooks", "ensure", "--url", world.stack.url())
        self.before = {kind: self.value(kind)["webhook_id"] for kind in EVENTS}
        self.jobs = 0
        self.versions = {kind: self.rotate(kind) for kind in EVENTS}
        wait_until("all deliveries", lambda: not world.simulator.pending(), SETTLED_WITHIN)
        world.wait_until_settled(SETTLED_WITHIN, world.tick)
        self.counts = calls.counted(world)

    def value(self, kind):
        """The current signing secret."""
        secret = self.world.secret_of(kind)
        return json.loads(self.secrets.get_secret_value(SecretId=secret)["SecretString"])

    def rotate(self, kind):
        secret = self.world.secret_of(kind)
        version = begin(self.world, secret)
        for step in STEPS:
            for _ in range(2):
                self.world.invoke("rotator", event(secret, version, step))
                assert self.world.simulator.submit(f"https://e2e.example/{kind}/{self.jobs}")
                self.jobs += 1
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
    answers = {
        (row["http_status"], row["status"], webhook["is_active"])
        for name, webhook in rotation.webhooks().items()
        for row in rotation.world.simulator.deliveries(name)
    }
    # A webhook that is switched off gives up what it had still to send; its successor sends it too.
    given_up = (None, "abandoned", False)
    refused = {answer for answer in answers if answer[0] not in (200, 202)} - {given_up}
    assert not refused, answers
    assert len(rotation.world.rows()) == rotation.jobs
    assert set(rotation.world.rows().values()) == {"stored"}


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
