"""Who may do what: the template, `docs/iam.json` and the calls in the code, compared each way."""

import json
import re

import botocore.session
import pytest
from botocore import xform_name

from template import GONE, REPOSITORY, Rules, changed, findings, functions, load

RULES = Rules()
TEMPLATE = load()
DECLARED = json.loads((REPOSITORY / "docs/iam.json").read_text(encoding="utf-8"))["roles"]
ROLES = {
    "receiver": "ReceiverRole",
    "worker": "WorkerRole",
    "scheduler": "SchedulerRole",
    "rotator": "RotatorRole",
    "schedule": "ScheduleRole",
}
FUNCTIONS = ("receiver", "worker", "scheduler", "rotator")
# Who takes a role: the service, and nobody else.
SERVICES = {name: "lambda.amazonaws.com" for name in FUNCTIONS}
SERVICES["schedule"] = "scheduler.amazonaws.com"
# What a call needs where it is not the action of its own name. Source: the services' pages in the
# Service Authorization Reference.
ACTIONS = {
    "SendMessageBatch": "sqs:SendMessage",
    "ListObjectsV2": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    # A transaction needs what its parts need, and ours are puts.
    "TransactWriteItems": "dynamodb:PutItem",
}


def declared(role):
    """What the page says of a role, as pairs of a resource's name and an action."""
    shared = DECLARED["functions"] if role in DECLARED and role not in ("schedule", "cli") else []
    return [(it["on"], it["action"]) for it in shared + DECLARED[role]]


def resources(stack, role):
    """The resources that the page names, as the template knows them."""
    prefix = stack.parameters["ResultsPrefix"]
    hooks = list(filter(None, stack.parameters["WebhookSecretArns"].split(",")))
    kinds = stack.parameters["WebhookKinds"].title().split(",")
    return {
        "*": ["*"],
        "ApiKeySecret": [stack.parameters["ApiKeySecretArn"] or "${ApiKeySecret.Id}"],
        "Bucket": ["${Bucket.Arn}"],
        "Logs": [f"${{{role.title()}Logs.Arn}}"],
        "Queue": ["${Queue.Arn}"],
        # A result's key begins with its kind; nothing else in the bucket is touched.
        "Results": ["/".join(filter(None, ("${Bucket.Arn}", prefix, "kind=*")))],
        "Scheduler": ["${Scheduler.Arn}"],
        "SecretsKey": [stack.parameters["SecretsKmsKeyArn"]],
        "Table": ["${Table.Arn}"],
        "Table/index/due": ["${Table.Arn}/index/due"],
        "WebhookSecrets": hooks or [f"${{{kind}WebhookSecret.Id}}" for kind in kinds],
    }


def listed(it):
    return it if isinstance(it, list) else [it]


def allowed(stack, role):
    """What the template lets a role do, as pairs of a resource and an action."""
    for policy in stack.properties(ROLES[role])["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            assert not statement.keys() & {"NotAction", "NotResource"}
            for resource in listed(statement["Resource"]):
                for action in listed(statement["Action"]):
                    yield resource, action


@RULES.rule(
    ("ReceiverRole/Properties/Policies/0/PolicyDocument/Statement/1/Action", "dynamodb:PutItem"),
    ("ReceiverRole/Properties/Policies/0/PolicyDocument/Statement/1/Action/0", "dynamodb:Scan"),
    ("WorkerRole/Properties/Policies/0/PolicyDocument/Statement/1/Resource", "*"),
    ("WorkerRole/Properties/Policies/0/PolicyDocument/Statement/1/Action", "dynamodb:*"),
    ("WorkerRole/Properties/Policies/0/PolicyDocument/Statement/6", GONE),
    (
        "WorkerRole/Properties/Policies/0/PolicyDocument/Statement/5/Resource",
        {"Fn::Sub": "${Bucket.Arn}/*"},
    ),
    ("SchedulerRole/Properties/Policies/0/PolicyDocument/Statement/2", GONE),
    ("SchedulerRole/Properties/Policies/1", GONE),
    ("ReceiverRole/Properties/Policies/2", GONE),
    ("RotatorRole/Properties/Policies/0/PolicyDocument/Statement/3/Action/2", GONE),
    ("RotatorRole/Properties/Policies/0/PolicyDocument/Statement/3/Resource", "*"),
    ("RotatorRole/Properties/Policies/1/Fn::If/1/PolicyDocument/Statement/1", GONE),
    ("ScheduleRole/Properties/Policies/0/PolicyDocument/Statement/0/Resource", "*"),
)
def roles_may_do_what_is_declared(stack):
    for role in ROLES:
        names = resources(stack, role)
        expected = {(it, action) for on, action in declared(role) for it in names[on] if it}
        if stack.parameters["Tracing"] == "disabled":
            expected = {(it, action) for it, action in expected if not action.startswith("xray:")}
        given = list(allowed(stack, role))
        if len(set(given)) != len(given):
            yield f"{role}: something is said twice"
        for resource, action in sorted(set(given) - expected):
            yield f"{role} may {action} on {resource}, which nobody needs"
        for resource, action in sorted(expected - set(given)):
            yield f"{role} may not {action} on {resource}"


# The only places where something is left open: X-Ray has no resources, and results have no end.
OPEN = {"*": {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}}


@RULES.rule(
    ("WorkerRole/Properties/Policies/0/PolicyDocument/Statement/1/Resource", "*"),
    ("WorkerRole/Properties/Policies/0/PolicyDocument/Statement/1/Action", "dynamodb:*"),
    ("ReceiverRole/Properties/Policies/0/PolicyDocument/Statement/2/Action/1", "sqs:Send*"),
    (
        "ScheduleRole/Properties/Policies/0/PolicyDocument/Statement/0/Resource",
        "arn:aws:lambda:eu-central-1:123456789012:function:*",
    ),
    ("ReceiverRole/Properties/ManagedPolicyArns", ["arn:aws:iam::aws:policy/AdministratorAccess"]),
)
def nothing_is_left_open(stack):
    for role, name in ROLES.items():
        if "ManagedPolicyArns" in stack.properties(name):
            yield f"{role} has policies of somebody else's"
        for resource, action in allowed(stack, role):
            is_open = "*" in resource.removesuffix("/kind=*") or "?" in resource
            if "*" in action or (is_open and action not in OPEN.get(resource, ())):
                yield f"{role} may {action} on {resource}"


@RULES.rule(
    (
        "WorkerRole/Properties/AssumeRolePolicyDocument/Statement/0/Principal/Service",
        "ec2.amazonaws.com",
    ),
    ("WorkerRole/Properties/AssumeRolePolicyDocument/Statement/0/Principal", {"AWS": "*"}),
    ("ScheduleRole/Properties/AssumeRolePolicyDocument/Statement/0/Condition", GONE),
    ("Worker/Properties/Role", {"Fn::GetAtt": ["ReceiverRole", "Arn"]}),
    ("Receiver/Properties/Role", GONE),
    ("Receiver/Properties/Policies", ["AWSLambdaBasicExecutionRole"]),
)
def each_function_has_a_role_of_its_own(stack):
    for name, function in functions(stack.document).items():
        if stack.properties(name).get("Role") != f"${{{name}Role.Arn}}":
            yield f"{name} has another role"
        if function["Properties"].keys() & {"Policies", "Events"}:
            yield f"{name} gets rights besides its role"
    for role, name in ROLES.items():
        [trust] = stack.properties(name)["AssumeRolePolicyDocument"]["Statement"]
        if trust["Principal"] != {"Service": SERVICES[role]}:
            yield f"{role} is taken by {trust['Principal']}"
        account = {"StringEquals": {"aws:SourceAccount": "123456789012"}}
        if role == "schedule" and trust.get("Condition") != account:
            yield "schedules of other accounts may use the role"
    if set(stack.of_type("AWS::IAM::Role")) != set(ROLES.values()):
        yield "a role that nobody knows"


@RULES.rule(
    (
        "WorkerRole/Properties/Policies/1/Fn::If/1/PolicyDocument/Statement/0/Condition",
        GONE,
    ),
    (
        "RotatorRole/Properties/Policies/1/Fn::If/1/PolicyDocument/Statement/1/Condition",
        GONE,
    ),
)
def keys_are_used_for_secrets_alone(stack):
    for name in (ROLES[role] for role in FUNCTIONS):
        for policy in stack.properties(name)["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                if not str(statement["Action"]).startswith("kms:"):
                    continue
                via = {"kms:ViaService": "secretsmanager.eu-central-1.amazonaws.com"}
                if statement.get("Condition") != {"StringEquals": via}:
                    yield f"{name} uses the key for anything"


@pytest.mark.parametrize("rule", RULES.each())
def test_the_template_keeps_the_rule(rule):
    assert findings(rule, TEMPLATE) == []


@pytest.mark.parametrize(("rule", "path", "value"), RULES.each_change())
def test_the_rule_objects(rule, path, value):
    assert findings(rule, changed(TEMPLATE, path, value)) != []


def test_each_action_has_its_calls_or_a_reason():
    for role, entries in DECLARED.items():
        for it in entries:
            assert it.keys() in ({"on", "action", "calls"}, {"on", "action", "because"}), it
            for call in it.get("calls", []):
                service = it["action"].split(":")[0]
                assert ACTIONS.get(call, f"{service}:{call}") == it["action"], it


def test_the_page_of_the_table_says_the_same():
    page = (REPOSITORY / "docs/table.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \|([^|]*)\|([^|]*)\|([^|]*)\|$", page, re.M)
    rows = {role.lower(): cells for role, *cells in rows if role.lower() in DECLARED}
    assert rows.keys() == {*FUNCTIONS, "cli"}
    places = ("Table", "Table/index/due", "Table/index/listing")
    for role, cells in rows.items():
        told = {
            (place, f"dynamodb:{action}")
            for place, cell in zip(places, cells)
            for action in re.findall(r"`(\w+)`", cell)
        }
        given = {it for it in declared(role) if it[1].startswith("dynamodb:")}
        assert told == given, role


def test_functions_may_not_do_what_only_people_do():
    people = {"dynamodb:Scan", "secretsmanager:PutSecretValue", "secretsmanager:RotateSecret"}
    assert people <= {action for _, action in declared("cli")}
    # Keeping new secrets is what the rotator is for.
    rotating = {"secretsmanager:PutSecretValue"}
    for role in FUNCTIONS:
        own = {action for _, action in declared(role)} - (rotating if role == "rotator" else set())
        assert not people & own, role


# Calls that not every user of an adapter makes, by the method that makes them.
METHODS = {".depth()": "GetQueueAttributes"}


@pytest.mark.parametrize("role", FUNCTIONS)
def test_functions_may_do_what_they_alone_do(role):
    sources = sorted((REPOSITORY / "functions" / role / "src").rglob("*.rs"))
    assert sources
    text = "".join(source.read_text(encoding="utf-8") for source in sources)
    for method, call in METHODS.items():
        may = [it for it in DECLARED[role] if it["action"].endswith(f":{call}")]
        if method in text:
            assert may, f"the {role} may not {call}"
        else:
            assert all("because" in it for it in may), f"the {role} makes no {call}"


# The clients of AWS, by the crate that brings them. Results go through `object_store`, which makes
# its calls by itself.
CLIENTS = ("dynamodb", "sqs", "secretsmanager", "cloudformation", "sts")


def made(service):
    """The calls of a service that the code of our crates makes, tests left out."""
    model = botocore.session.get_session().get_service_model(service)
    operations = {xform_name(name): name for name in model.operation_names}
    found = set()
    for manifest in REPOSITORY.glob("*/**/Cargo.toml"):
        if "target" in manifest.parts or f"aws-sdk-{service}" not in manifest.read_text("utf-8"):
            continue
        for source in (manifest.parent / "src").rglob("*.rs"):
            if "test" in source.stem or {"tests", "testing"} & set(source.parts):
                continue
            text = source.read_text(encoding="utf-8")
            found |= {operations.get(name) for name in re.findall(r"\.(\w+)\(\)", text)}
    return found - {None}


@pytest.mark.parametrize("service", CLIENTS)
def test_the_calls_in_the_code_are_the_declared_ones(service):
    calls = {
        role: {
            call
            for it in entries
            if it["action"].startswith(service + ":")
            for call in it.get("calls", [])
        }
        for role, entries in DECLARED.items()
    }
    code = made(service)
    if not code:
        return
    assert code <= set().union(*calls.values()), "a call that nobody is allowed to make"
    of_functions = set().union(*(calls[role] for role in FUNCTIONS))
    assert of_functions <= code, "a permission for a call that nobody makes"
