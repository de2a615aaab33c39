"""Secrets Manager's part in a rotation, which the emulator does not play: it calls no function."""

import uuid

STEPS = ["createSecret", "setSecret", "testSecret", "finishSecret"]
# Secrets Manager tries each step again for days; a step is tried here until it ends well.
TRIES_MAX = 20


def rotate_by_itself(world, secret):
    """Has Secrets Manager rotate a secret from now on, as a schedule of the stack does."""
    world.emulator.client("secretsmanager").rotate_secret(
        SecretId=secret,
        ClientRequestToken=str(uuid.uuid4()),
        RotationLambdaARN=world.output("RotatorArn"),
        RotationRules={"AutomaticallyAfterDays": 30},
    )


def begin(world, secret):
    """Begins a rotation; returns its version.

    The label without a value, as Secrets Manager sets it before the first step.
    """
    rotate_by_itself(world, secret)
    version = str(uuid.uuid4())
    world.emulator.client("secretsmanager").put_secret_value(
        SecretId=secret, ClientRequestToken=version, VersionStages=["AWSPENDING"]
    )
    return version


def event(secret, version, step):
    """What the rotator is called with."""
    return {"SecretId": secret, "ClientRequestToken": version, "Step": step}


def take(world, event):
    """Has a step taken, again and again until it ends well; returns how often it was tried."""
    for tries in range(1, TRIES_MAX + 1):
        payload, ended_well = world.attempt("rotator", event)
        if ended_well:
            return tries
    raise AssertionError(f"{event['Step']}: {payload}")
