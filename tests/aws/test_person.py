"""Everything that a person does at the command line, on a stack whose worker is switched off."""

import json

import pytest

import calls
from person import STRICT_AUDIT, Person
from rotating import rotate_by_itself
from simulated import EVENTS, KEY
from stack import REPOSITORY
from waiting import wait_until

# Jobs of a moment ago are compared as well, not left to their webhooks and to lists that lag.
FRESH = {"GLEANER_LIMITS_ADOPTION_MARGIN": "1s", "GLEANER_RECONCILE_THRESHOLD": "1s"}
# Seconds.
FOUND_WITHIN = 30
POLL = ("poll", "--base", "100ms", "--cap", "1s", "--max-wait", "60s")


@pytest.fixture(scope="module")
def world(make_world):
    world = make_world()
    world.stack.put_secret(world.output("ApiKeySecretId"), KEY)
    functions = world.emulator.client("lambda")
    [mapping] = functions.list_event_source_mappings()["EventSourceMappings"]
    functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    world.person = Person(world, FRESH)
    return world


@pytest.fixture(scope="module")
def person(world):
    return world.person


def test_webhooks_are_made_listed_and_deleted(world, person):
    made = person.listed("webhook", "webhooks", "create", "--url", world.stack.url())
    assert {row["event"] for row in made} == set(EVENTS.values())
    assert all(row["outcome"] == "created" and row["secret_known"] for row in made)
    listed = person.listed("webhook", "webhooks", "list")
    assert {row["id"] for row in listed} == {row["id"] for row in made}
    batches = next(row["id"] for row in made if row["event"] == EVENTS["batch"])
    person.gleaner("webhooks", "delete", batches)
    assert len(world.simulator.ask("GET", "/v1/webhooks")["items"]) == 2


def test_webhooks_are_brought_into_order_and_a_rotation_is_begun(world, person):
    wanted = ("webhooks", "ensure", "--url", world.stack.url())
    planned = person.listed("webhook_plan", *wanted, "--dry-run")
    assert sorted(row["action"] for row in planned) == ["create", "keep", "keep"]
    done = person.listed("webhook", *wanted)
    assert sorted(row["outcome"] for row in done) == ["created", "kept", "kept"]
    done = person.listed("webhook", *wanted)
    assert {row["outcome"] for row in done} == {"kept"}
    person.gleaner("rotate", "--event", "extract", expected=78)
    rotate_by_itself(world, world.secret_of("extract"))
    [begun] = person.listed("rotation", "rotate", "--event", "extract")
    assert begun["outcome"] == "begun"


def test_jobs_of_all_kinds_are_polled_and_shown(world, person):
    pages = person.submit(["https://e2e.example/a", "https://e2e.example/b"])
    [batch] = person.submit(["https://e2e.example/c", "https://e2e.example/d"], "--batch")
    [crawl] = person.submit(["https://site.e2e.example/?pages=5"], "--crawl")
    ids = {*pages, batch, crawl}
    person.gleaner(*POLL)
    assert world.owed() == set()
    assert {row["job_id"] for row in person.listed("job", "jobs")} == ids
    assert {row["job_id"] for row in person.listed("result", "results", "list")} == ids
    for job in ids:
        person.gleaner("jobs", "show", job)
        person.gleaner("results", "path", job)
        assert person.gleaner("results", "show", job)
    [counts] = person.listed("counts", "jobs", "counts")
    assert counts["jobs"] == {"stored": len(ids)}


def test_a_job_that_failed_too_often_is_tried_again_on_request(world, person):
    world.simulator.ask("PATCH", "/sim/faults", {"jobs": {"fail_retryable": 1.0}})
    person.submit(["https://e2e.example/broken"])
    person.gleaner(*POLL, expected=2)
    [dead] = person.listed("job", "jobs", "--state", "dead")
    assert dead["reason"] == "resubmits_exhausted"
    world.simulator.ask("POST", "/sim/faults", "none")
    person.gleaner("jobs", "redrive", dead["job_id"])
    person.gleaner(*POLL)
    assert world.rows()["extract", dead["job_id"]] == "superseded"
    assert world.owed() == set()


def test_jobs_that_nobody_told_of_are_found_and_the_books_balance(world, person):
    stranger = world.simulator.submit("https://elsewhere.example/found")
    person.gleaner("replay")

    def found():
        person.gleaner("reconcile")
        return ("extract", stranger) in world.rows()

    wait_until("the job in the ledger", found, FOUND_WITHIN)
    person.gleaner(*POLL)
    assert world.rows()["extract", stranger] == "stored"
    [books] = person.listed("audit", *STRICT_AUDIT)
    assert books["balances"], books


def test_a_letter_is_looked_at_and_discarded(world, person):
    queue = world.output("DeadLetterQueueUrl")
    world.emulator.client("sqs").send_message(QueueUrl=queue, MessageBody="not a task")
    [letter] = person.listed("letter", "dead", "list", "--reason", "letter")
    # Still there, at once.
    person.gleaner("dead", "discard", f"letter:{letter['letter_id']}")
    assert world.depth("DeadLetterQueueUrl") == 0


def test_the_doctor_finds_the_stack_in_order(person):
    checks = person.listed("check", "doctor", expected=1)
    # The addresses that the stack tells are those of AWS, at which nobody answers here.
    elsewhere = {"webhooks", "receiver"}
    assert {check["check"] for check in checks if check["outcome"] != "ok"} == elsewhere, checks


def test_each_right_is_used_and_none_is_missing(world):
    assert world.proxy.denied() == []
    asked = {operation for caller, _, operation, _ in calls.counted(world) if caller == "cli"}
    rights = json.loads((REPOSITORY / "docs/iam.json").read_text(encoding="utf-8"))["roles"]["cli"]
    idle = [
        right["action"] for right in rights if not any(call in asked for call in right["calls"])
    ]
    assert not idle
