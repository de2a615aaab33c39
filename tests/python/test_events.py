"""The events in `events/`: complete as AWS sends them, signed as their README says."""

import base64
import hashlib
import hmac
import json
import re
import uuid

import pytest

from template import REPOSITORY

EVENTS = REPOSITORY / "events"
README = (EVENTS / "README.md").read_text(encoding="utf-8")
SECRET, OTHER_SECRET = b"test-secret-1", b"test-secret-0"
PATH = "/webhook"

# What AWS sends in every event of a kind; nothing else may be there.
HTTP = {"version", "routeKey", "rawPath", "rawQueryString", "headers", "requestContext"}
HTTP_CONTEXT = {"accountId", "apiId", "domainName", "domainPrefix", "http", "requestId", "routeKey"}
HTTP_CONTEXT |= {"stage", "time", "timeEpoch"}
REST = {"resource", "path", "httpMethod", "headers", "multiValueHeaders", "queryStringParameters"}
REST |= {"multiValueQueryStringParameters", "pathParameters", "stageVariables", "requestContext"}
REST |= {"body", "isBase64Encoded"}
REST_CONTEXT = {"accountId", "apiId", "deploymentId", "domainName", "domainPrefix", "identity"}
REST_CONTEXT |= {"extendedRequestId", "httpMethod", "path", "protocol", "requestId", "requestTime"}
REST_CONTEXT |= {"requestTimeEpoch", "resourceId", "resourcePath", "stage"}
ALB = {"requestContext", "httpMethod", "path", "body", "isBase64Encoded"}
RECORD = {"messageId", "receiptHandle", "body", "attributes", "messageAttributes", "md5OfBody"}
RECORD |= {"eventSource", "eventSourceARN", "awsRegion"}
ATTRIBUTES = {"ApproximateReceiveCount", "SentTimestamp", "SenderId"}
ATTRIBUTES |= {"ApproximateFirstReceiveTimestamp"}
SCHEDULED = {"version", "id", "detail-type", "source", "account", "time", "region", "resources"}
SCHEDULED |= {"detail"}
KINDS = {"extract", "batch", "crawl"}


def names(function):
    return sorted(path.stem for path in (EVENTS / function).iterdir())


def load(function, name):
    return json.loads((EVENTS / function / f"{name}.json").read_text(encoding="utf-8"))


def answers(function):
    """The answers that the README promises, by the file's name."""
    rows = re.findall(rf"^\| \[(.+)\.json\]\({function}/\1\.json\) \| .+ \| (.+) \|$", README, re.M)
    return dict(rows)


REQUESTS = [name for name in names("receiver") if name != "not-http"]
DELIVERIES = [name for name in REQUESTS if name not in ("alb-health-check", "other-method")]
ACCEPTED = [name for name, answer in answers("receiver").items() if answer == "202"]


def headers(event):
    """The headers with lower-case names, wherever the event has them."""
    single = event.get("headers")
    found = single or {name: ",".join(all) for name, all in event["multiValueHeaders"].items()}
    return {name.lower(): value for name, value in found.items()}


def body(event):
    text = event.get("body") or ""
    if event["isBase64Encoded"]:
        return base64.b64decode(text, validate=True)
    return text.encode()


# FD-06: a working event for each function, with what to expect of it.
@pytest.mark.parametrize("function", ["receiver", "worker", "scheduler", "rotator"])
def test_each_file_is_told_of_with_its_answer(function):
    told = answers(function)
    assert sorted(told) == names(function)
    assert all(told.values())


@pytest.mark.parametrize("name", DELIVERIES)
def test_signatures_are_those_of_the_documented_secret(name):
    event = load("receiver", name)
    given = headers(event).get("x-webhook-signature")
    if name == "unsigned":
        assert given is None
        return
    digest = lambda secret: "sha256=" + hmac.new(secret, body(event), hashlib.sha256).hexdigest()
    assert given == digest(OTHER_SECRET if name == "wrong-signature" else SECRET)


def test_the_secrets_and_vectors_are_known():
    flat = load("receiver", "flat-envelope")
    assert body(flat) == b'{"job_id":"j1","event_type":"extract_completed","id":"d1"}'
    known = "ea826bf319909e18b85667f620fe669a612ab8a66c889d24005444e23c54baf7"
    assert headers(flat)["x-webhook-signature"] == f"sha256={known}"


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_deliveries_carry_a_valid_job_id(name):
    envelope = json.loads(body(load("receiver", name)))
    if name == "flat-envelope":
        assert envelope["job_id"] == "j1"
        return
    assert envelope.keys() == {"event", "webhook_id", "delivery_id", "timestamp", "data"}
    ids = (envelope["webhook_id"], envelope["delivery_id"], envelope["data"]["job_id"])
    assert all(str(uuid.UUID(it)) == it for it in ids)
    sent = headers(load("receiver", name))
    assert sent["x-webhook-event"] == envelope["event"]
    assert sent["x-webhook-delivery-id"] == envelope["delivery_id"]
    assert sent["user-agent"] == "scraper-api-webhook/1.0"


def test_every_kind_and_every_way_in_is_there():
    events = [json.loads(body(load("receiver", name))) for name in ACCEPTED]
    assert {f"{kind}_completed" for kind in KINDS} < {it.get("event") for it in events}
    for way in ("http-api", "rest-api", "function-url", "alb"):
        plain, encoded = load("receiver", way), load("receiver", f"{way}-base64")
        assert (plain["isBase64Encoded"], encoded["isBase64Encoded"]) == (False, True)
        assert body(plain) == body(encoded)
        assert not body(plain).isascii(), "bytes that are easily mangled on their way"


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_are_complete(name):
    event = load("receiver", name)
    context = event["requestContext"]
    if "elb" in context:
        check_alb(event)
    elif "identity" in context:
        check_rest(event)
    else:
        check_http(event)
    if name in DELIVERIES and (length := headers(event).get("content-length")):
        assert int(length) == len(body(event))


def check_http(event):
    context = event["requestContext"]
    method, path = context["http"]["method"], context["http"]["path"]
    assert event.keys() - {"body"} == HTTP | {"isBase64Encoded"}
    assert ("body" in event) == (method == "POST")
    assert event["version"] == "2.0"
    assert context.keys() == HTTP_CONTEXT
    assert context["http"].keys() == {"method", "path", "protocol", "sourceIp", "userAgent"}
    assert event["rawPath"] == path
    assert event["routeKey"] == context["routeKey"]
    assert headers(event)["host"] == context["domainName"]
    assert context["domainName"].startswith(context["apiId"] + ".")
    assert all(name == name.lower() for name in event["headers"])
    if ".lambda-url." in context["domainName"]:
        assert (context["accountId"], event["routeKey"]) == ("anonymous", "$default")
    else:
        assert event["routeKey"] == f"POST {PATH}"
        stage = context["stage"]
        assert path == (PATH if stage == "$default" else f"/{stage}{PATH}")


def check_rest(event):
    context = event["requestContext"]
    assert event.keys() == REST
    assert context.keys() == REST_CONTEXT
    assert event["path"] == event["resource"] == PATH
    assert context["path"] == f"/{context['stage']}{PATH}"
    assert "X-Webhook-Signature" in event["headers"], "as the sender wrote it"
    assert event["multiValueHeaders"] == {name: [it] for name, it in event["headers"].items()}


def check_alb(event):
    assert event["requestContext"]["elb"].keys() == {"targetGroupArn"}
    multi = {"multiValueHeaders", "multiValueQueryStringParameters"}
    single = {"headers", "queryStringParameters"}
    assert event.keys() - ALB in (multi, single)
    if event["httpMethod"] == "GET":
        assert headers(event) == {"user-agent": "ELB-HealthChecker/2.0"}


def test_both_kinds_of_stages_are_there():
    stages = {load("receiver", name)["requestContext"].get("stage") for name in ACCEPTED}
    assert {"$default", "prod"} <= stages


@pytest.mark.parametrize("name", names("worker"))
def test_records_are_complete(name):
    event = load("worker", name)
    assert event.keys() == {"Records"}
    for record in event["Records"]:
        assert record.keys() == RECORD
        assert record["attributes"].keys() == ATTRIBUTES
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()
        assert record["eventSource"] == "aws:sqs"
        assert record["eventSourceARN"].split(":")[3] == record["awsRegion"]
        assert not record["eventSourceARN"].endswith(".fifo")
        assert str(uuid.UUID(record["messageId"])) == record["messageId"]
    ids = [record["messageId"] for record in event["Records"]]
    assert len(set(ids)) == len(ids)


def is_task(text):
    try:
        task = json.loads(text)
    except ValueError:
        return False
    if not isinstance(task, dict) or task.keys() != {"v", "job_id", "kind"}:
        return False
    return task["v"] == 1 and task["kind"] in KINDS and str(uuid.UUID(task["job_id"])) != ""


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("one", [True]),
        ("many", [True, True, True]),
        ("mixed", [True, False, True]),
        ("foreign", [False, False, True]),
    ],
)
def test_records_are_tasks_or_not_as_told(name, tasks):
    assert [is_task(record["body"]) for record in load("worker", name)["Records"]] == tasks


def test_the_schedule_is_that_of_eventbridge_scheduler():
    event = load("scheduler", "schedule")
    assert event.keys() == SCHEDULED
    assert (event["source"], event["detail-type"]) == ("aws.scheduler", "Scheduled Event")
    assert event["detail"] == "{}", "a text, not an object"
    [schedule] = event["resources"]
    assert schedule.startswith(f"arn:aws:scheduler:{event['region']}:{event['account']}:schedule/")


def test_commands_of_the_readme_name_files_that_are_there():
    files = set(re.findall(r"events/[a-z]+/[a-z0-9-]+\.json", README))
    assert files
    assert all((REPOSITORY / file).is_file() for file in files)


# What Secrets Manager sends, whatever a secret is for.
STEP = {"SecretId", "ClientRequestToken", "Step"}


@pytest.mark.parametrize("name", [name for name in names("rotator") if name != "not-secrets-manager"])
def test_steps_are_as_secrets_manager_sends_them(name):
    event = load("rotator", name)
    assert event.keys() == STEP
    assert re.fullmatch(r"arn:aws:secretsmanager:[a-z0-9-]+:\d{12}:secret:.+-\w{6}", event["SecretId"])
    assert str(uuid.UUID(event["ClientRequestToken"])) == event["ClientRequestToken"]


def test_the_four_steps_are_of_one_rotation():
    steps = ["create-secret", "set-secret", "test-secret", "finish-secret"]
    events = [load("rotator", name) for name in steps]
    assert len({(it["SecretId"], it["ClientRequestToken"]) for it in events}) == 1
    assert [it["Step"] for it in events] == ["createSecret", "setSecret", "testSecret", "finishSecret"]
