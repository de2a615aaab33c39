"""Secrets that are not there, are wrong, or are typed into the console while the stack runs."""

import time

import pytest

from delivery import SIGNED, deliver
from simulated import EVENTS, KEY
from stack import FUNCTIONS
from waiting import wait_until

# Seconds. docs/configuration.md, `limits.secret_cooldown`, and as much again for a busy machine.
COOLDOWN = 10
# A job of the platform takes one or two; a pause of the account would take a minute.
STORED_WITHIN = 40

TYPED = "typed-into-the-console"
WITHDRAWN = "a-key-that-was-withdrawn"


@pytest.fixture(scope="module")
def world(make_world):
    world = make_world(parameters={"LogLevel": "trace"})
    # What is accepted here is looked at: without a key the account would be paused.
    world.stack.put_secret(world.output("ApiKeySecretId"), KEY)
    return world


@pytest.fixture
def put(world):
    """Gives all signing secrets this value, and their receiver a new start."""

    def put(value):
        for kind in EVENTS:
            world.stack.put_secret(world.secret_of(kind), value)
        world.restart("receiver")

    # Twice, since the value before the last one counts as well for a while.
    put(" ")
    put("\n")
    return put


def assert_nothing_is_accepted(world, secret):
    """A delivery is answered 503, and neither the table nor the queue hears of it."""
    before = len(world.rows()), world.depth("QueueUrl")
    assert deliver(world.stack.url(), secret) == 503
    assert (len(world.rows()), world.depth("QueueUrl")) == before


# SG-06: made without any value, and so nobody's key.
def test_a_new_stack_accepts_nothing(world):
    assert_nothing_is_accepted(world, "")
    assert_nothing_is_accepted(world, TYPED)


# SG-06
def test_a_blank_secret_accepts_nothing(world, put):
    assert_nothing_is_accepted(world, "\n")
    assert_nothing_is_accepted(world, "")


def test_a_value_that_is_no_secret_accepts_nothing(world, put):
    put('{"what": "is this?"}')
    assert_nothing_is_accepted(world, '{"what": "is this?"}')


# SM-03
def test_a_secret_that_is_deleted_accepts_nothing(world, put):
    put(TYPED)
    secrets = world.emulator.client("secretsmanager")
    ids = [world.secret_of(kind) for kind in EVENTS]
    for secret in ids:
        secrets.delete_secret(SecretId=secret, RecoveryWindowInDays=7)
    try:
        world.restart("receiver")
        assert_nothing_is_accepted(world, TYPED)
    finally:
        for secret in ids:
            secrets.restore_secret(SecretId=secret)


# SM-03: answered 503, never 401.
def test_a_secret_that_may_not_be_read_accepts_nothing(world, put):
    put(TYPED)
    roles = world.emulator.client("iam")
    role = world.stack.roles["receiver"][1].rpartition("/")[2]
    denied = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny",'
        ' "Action": "secretsmanager:GetSecretValue", "Resource": "*"}]}'
    )
    roles.put_role_policy(RoleName=role, PolicyName="denied", PolicyDocument=denied)
    try:
        world.restart("receiver")
        assert_nothing_is_accepted(world, TYPED)
    finally:
        roles.delete_role_policy(RoleName=role, PolicyName="denied")


def test_a_wrong_signature_is_refused_and_nothing_accepted(world, put):
    put(TYPED)
    before = len(world.rows())
    assert deliver(world.stack.url(), "another") == 401
    assert deliver(world.stack.url(), "") == 401
    assert len(world.rows()) == before
    assert deliver(world.stack.url(), TYPED) == 202
    assert len(world.rows()) == before + 1


# SM-08: webhooks may be registered one after the other.
def test_a_secret_without_a_value_takes_no_other_with_it(world, put):
    world.stack.put_secret(world.secret_of("extract"), TYPED)
    world.restart("receiver")
    assert deliver(world.stack.url(), TYPED) == 202
    before = len(world.rows())
    assert deliver(world.stack.url(), "a secret that is typed in later") == 503
    assert len(world.rows()) == before


# SM-01, SM-09: the first delivery that is signed with the new secret.
def test_a_webhook_secret_typed_into_the_console_is_accepted_at_once(world, put):
    webhook, secret = world.simulator.register("extract", world.stack.url())
    put(secret)
    # The receiver starts, and reads its secrets.
    assert deliver(world.stack.url(), secret) == 202
    read = time.monotonic()
    deployed = configuration(world, "receiver")

    secret = world.simulator.rotate(webhook)
    world.stack.put_secret(world.secret_of("extract"), secret)
    wait_until("the cool-down", lambda: time.monotonic() - read > COOLDOWN, 2 * COOLDOWN)
    job = world.simulator.submit("https://e2e.example/after-the-rotation")
    attempts = wait_until(
        "a delivery",
        lambda: [row for row in world.simulator.deliveries(webhook) if row["http_status"]],
        STORED_WITHIN,
    )
    assert [(row["job_id"], row["http_status"]) for row in attempts] == [(job, 202)]
    assert configuration(world, "receiver") == deployed
    world.simulator.ask("DELETE", f"/v1/webhooks/{webhook}", expected=204)


# SM-01, SM-09
def test_an_api_key_typed_into_the_console_is_used_at_once(world, put):
    webhook, secret = world.simulator.register("extract", world.stack.url())
    put(secret)
    world.stack.put_secret(world.output("ApiKeySecretId"), WITHDRAWN)
    world.restart("worker")
    # The worker starts, and reads its key; it has nothing to do.
    world.invoke("worker", {"Records": []})
    deployed = configuration(world, "worker")

    world.stack.put_secret(world.output("ApiKeySecretId"), KEY)
    job = world.simulator.submit("https://e2e.example/with-the-new-key")
    wait_until(
        "a stored result", lambda: world.rows().get(("extract", job)) == "stored", STORED_WITHIN
    )
    assert configuration(world, "worker") == deployed


def configuration(world, function):
    """What changes with each deployment of a function."""
    arn = world.stack.roles[function][0]
    answer = world.emulator.client("lambda").get_function_configuration(FunctionName=arn)
    return answer["RevisionId"], answer["LastModified"]


# OB-01: not at the most talkative level either, and whatever went wrong before.
def test_no_log_tells_a_secret_or_a_signature(world):
    world.tick()
    told = "\n".join(line for function in FUNCTIONS for line in world.logs(function))
    assert '"level":"TRACE"' in told or '"level":"DEBUG"' in told
    for word in SIGNED:
        assert word not in told
    for secret in (KEY, WITHDRAWN, TYPED, "whsec_"):
        assert secret not in told
    for function in ("receiver", "worker", "scheduler"):
        assert world.logs(function), function
