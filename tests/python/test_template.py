"""The template as a whole: what linters say of it, its parameters, settings and pages."""

import copy
import graphlib
import json
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from conftest import REPOSITORY
from template import EVERYTHING, SECRET, Stack, changed, functions, load, references, translate, variants

TEMPLATE = load()
PARAMETERS = TEMPLATE["Parameters"]
# It lies beside the interpreter of its environment. Seconds: it takes 3.
CFN_LINT, LINT_WITHIN = pathlib.Path(sys.executable).with_name("cfn-lint"), 120


def lint(path):
    """What cfn-lint says of a template; empty if nothing."""
    done = subprocess.run(
        [CFN_LINT, "--format", "parseable", "--template", path],
        capture_output=True,
        text=True,
        timeout=LINT_WITHIN,
        check=False,
    )
    assert done.stderr == "", done.stderr
    assert (done.returncode == 0) == (done.stdout == ""), done.stdout
    return done.stdout


def written(folder, document):
    path = folder / "template.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_cfn_lint_has_nothing_to_say(tmp_path):
    assert lint(str(REPOSITORY / "template.yaml")) == ""
    assert lint(written(tmp_path, translate(TEMPLATE))) == ""


def test_cfn_lint_does_object(tmp_path):
    broken = changed(TEMPLATE, "Queue/Properties/VisibilityTimeout", "for ever")
    assert "'for ever' is not of type" in lint(written(tmp_path, translate(broken)))


@pytest.mark.parametrize("parameters", [{}, EVERYTHING], ids=["default", "everything"])
def test_sam_translates_it(parameters):
    plain = translate(TEMPLATE, **parameters)
    assert "Transform" not in plain
    kinds = {it["Type"] for it in plain["Resources"].values()}
    assert not any(kind.startswith("AWS::Serverless::") for kind in kinds)
    assert len(functions(plain)) == 4
    # What SAM adds by itself is known here: nothing else gets rights or ways in.
    added = {name: it["Type"] for name, it in plain["Resources"].items()}
    added = {name: kind for name, kind in added.items() if name not in TEMPLATE["Resources"]}
    assert added == {"SchedulerEventInvokeConfig": "AWS::Lambda::EventInvokeConfig"}


def cycle(document):
    """The names of resources that need each other, if there are any."""
    resources = document["Resources"]
    graph = {}
    for name, resource in resources.items():
        after = resource.get("DependsOn", [])
        needs = {*references(resource), *([after] if isinstance(after, str) else after)}
        graph[name] = needs & resources.keys()
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


# DP-07: no resource needs one that needs it.
def test_nothing_needs_itself():
    assert cycle(translate(TEMPLATE)) is None
    url = {"Fn::GetAtt": ["ReceiverUrl", "FunctionUrl"]}
    broken = changed(TEMPLATE, "Receiver/Properties/Environment/Variables/GLEANER_URL", url)
    assert set(cycle(translate(broken))) == {"Receiver", "ReceiverUrl"}


class TestParameters:
    def test_each_is_used_grouped_and_described(self):
        used = set(references(TEMPLATE["Resources"])) | set(references(TEMPLATE["Conditions"]))
        assert PARAMETERS.keys() - used == set()
        groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
        grouped = [name for group in groups for name in group["Parameters"]]
        assert sorted(grouped) == sorted(PARAMETERS)
        for name, spec in PARAMETERS.items():
            assert spec["Description"].endswith("."), name
            bounded = spec.keys() & {"AllowedPattern", "AllowedValues", "MinValue", "MaxLength"}
            assert bounded, f"{name} takes anything"
            assert ("AllowedPattern" in spec) <= ("ConstraintDescription" in spec), name

    def test_each_has_a_default_that_it_allows(self):
        for name, spec in PARAMETERS.items():
            assert allows(name, str(spec["Default"])), name
            if "MaxValue" in spec:
                assert spec["MinValue"] < spec["MaxValue"], name

    def test_values_of_the_variants_are_allowed(self):
        for name, value in EVERYTHING.items():
            assert allows(name, value), name

    @pytest.mark.parametrize(
        ("name", "value", "is_allowed"),
        [
            ("ApiUrl", "https://api.example.org/base", True),
            ("ApiUrl", "http://127.0.0.1:8700", True),
            ("ApiUrl", "http://localhost", True),
            ("ApiUrl", "http://api.example.org", False),
            ("ApiUrl", "http://localhost.example.org", False),
            ("ApiUrl", "https://user@api.example.org", False),
            ("ApiUrl", "https://api.example.org?x=1", False),
            ("Webhooks", "off", True),
            ("Webhooks", "never", False),
            ("WebhookPath", "/hooks/geonode", True),
            ("WebhookPath", "/healthz", False),
            ("WebhookPath", "webhook", False),
            ("WebhookPath", "/webhook/", False),
            ("WebhookPath", "/{proxy+}", False),
            ("WebhookPath", "/", False),
            ("SigningHeaders", "x-signature,x-hub-signature-256", True),
            ("SigningHeaders", "x signature", False),
            ("EnvelopeJobId", "/data/job_id,/id", True),
            ("EnvelopeJobId", "data/job_id", False),
            ("EnvelopeEvents", "done=extract,all.done=batch", True),
            ("EnvelopeEvents", "done=map", False),
            ("ApiKeySecretArn", "gleaner/api-key", False),
            ("ApiKeySecretArn", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:k", False),
            ("WebhookSecretArns", SECRET + "AbCdEf", True),
            ("WebhookSecretArns", f"{SECRET}AbCdEf,{SECRET}GhIjKl", True),
            ("WebhookSecretArns", f"{SECRET}AbCdEf{SECRET}GhIjKl", False),
            ("WebhookSecretArns", f"{SECRET}AbCdEf,", False),
            ("WebhookSecretArns", f",{SECRET}AbCdEf", False),
            ("WebhookSecretArns", ",".join([SECRET + "AbCdEf"] * 21), False),
            ("SecretsKmsKeyArn", "alias/gleaner", False),
            ("RotationDays", "30", True),
            ("RotationDays", "-1", False),
            ("RotationDays", "1001", False),
            ("RotationStrategy", "in-place", True),
            ("RotationStrategy", "in_place", False),
            ("PreviousGrace", "1m", True),
            ("PreviousGrace", "0m", False),
            ("PreviousGrace", "1440m", True),
            ("PreviousGrace", "1441m", False),
            ("PreviousGrace", "900", False),
            ("SpendPerDay", "0", False),
            ("SpendPerDay", "10000", True),
            ("MaxAge", "2d", True),
            ("MaxAge", "48", False),
            ("LedgerRetention", "90d", True),
            ("LedgerRetention", "3d", True),
            ("LedgerRetention", "2d", False),
            ("LedgerRetention", "3650d", True),
            ("LedgerRetention", "3651d", False),
            ("LedgerRetention", "12h", False),
            ("ResultsPrefix", "gleaner/results", True),
            ("ResultsPrefix", "gleaner/", False),
            ("AlarmEmail", "somebody@example.org", True),
            ("AlarmEmail", "somebody", False),
        ],
    )
    def test_values_are_judged(self, name, value, is_allowed):
        assert allows(name, value) == is_allowed

    def test_each_allowed_time_has_its_row(self):
        maps = TEMPLATE["Mappings"]
        for name, table in (("WorkerTimeout", "WorkerTimeouts"), ("ScheduleMinutes", "Schedules")):
            assert list(maps[table]) == [str(it) for it in PARAMETERS[name]["AllowedValues"]]


def allows(name, value):
    """Whether CloudFormation takes a value."""
    spec = PARAMETERS[name]
    if "AllowedValues" in spec and value not in [str(it) for it in spec["AllowedValues"]]:
        return False
    if spec["Type"] == "Number" and not spec.get("MinValue", 0) <= float(value) <= spec.get(
        "MaxValue", float("inf")
    ):
        return False
    if len(value) > spec.get("MaxLength", len(value)):
        return False
    return re.fullmatch(spec.get("AllowedPattern", ".*"), value) is not None


ROLES = {
    "Receiver": "receiver",
    "Worker": "worker",
    "Scheduler": "scheduler",
    "Rotator": "rotator",
}


def settings():
    """What `docs/configuration.md` says: each function's variables, and whether it needs them."""
    page = (REPOSITORY / "docs/configuration.md").read_text(encoding="utf-8")
    read = {role: {"GLEANER_LOG": False} for role in ROLES.values()}
    for section in page.split("\n### ")[1:]:
        variable = re.search(r"^- Variable: `(GLEANER_\w+)`$", section, re.M)[1]
        readers = section.split("\n- Variable")[0].split("on AWS by ")[1:]
        for role, needs in re.findall(r"the (\w+)(, which needs it)?", "".join(readers)):
            read[role][variable] = bool(needs)
    return read


def variables(stack):
    return {
        role: stack.properties(name)["Environment"]["Variables"] for name, role in ROLES.items()
    }


def wrong_variables(document):
    """What the functions would refuse at their start."""
    read = settings()
    assert all(any(needed.values()) for needed in read.values()), "the page names no functions"
    for stack in variants(document):
        for role, given in variables(stack).items():
            for name in given.keys() - read[role].keys():
                yield f"the {role} does not read {name}"
            for name, is_required in read[role].items():
                if is_required and name not in given:
                    yield f"the {role} needs {name}"
            for name, value in given.items():
                if str(value).strip() == "":
                    yield f"{name} is set and empty"


# DP-09: each function is given what it needs and nothing that it does not read, whatever the
# parameters are.
def test_functions_get_the_settings_that_they_read():
    assert list(wrong_variables(TEMPLATE)) == []


@pytest.mark.parametrize(
    ("path", "change", "finding"),
    [
        ("Receiver", ("GLEANER_BUCKET", {"Ref": "Bucket"}), "the receiver does not read"),
        ("Receiver", ("GLEANER_TABLE", None), "the receiver needs GLEANER_TABLE"),
        ("Worker", ("GLEANER_BUCKET", None), "the worker needs GLEANER_BUCKET"),
        ("Worker", ("GLEANER_TABEL", "x"), "the worker does not read GLEANER_TABEL"),
        ("Scheduler", ("GLEANER_STACK", None), "the scheduler needs GLEANER_STACK"),
        ("Worker", ("GLEANER_RESULTS_PREFIX", {"Ref": "ResultsPrefix"}), "set and empty"),
        ("Rotator", ("GLEANER_QUEUE_URL", {"Ref": "Queue"}), "the rotator does not read"),
        ("Rotator", ("GLEANER_WEBHOOK_SECRET_IDS", None), "the rotator needs"),
    ],
)
def test_wrong_settings_are_noticed(path, change, finding):
    name, value = change
    broken = copy.deepcopy(TEMPLATE)
    given = broken["Resources"][path]["Properties"]["Environment"]["Variables"]
    if value is None:
        del given[name]
    else:
        given[name] = value
    assert any(finding in said for said in wrong_variables(broken))


# AWS Lambda, quotas: the size of all variables.
VARIABLES_BYTES_MAX = 4_096


def test_variables_fit_however_many_secrets_there_are():
    many = ",".join(f"{SECRET}{number:06}" for number in range(20))
    assert allows("WebhookSecretArns", many)
    stack = Stack(TEMPLATE, **{**EVERYTHING, "WebhookSecretArns": many})
    for given in variables(stack).values():
        assert len("".join(f"{name}{value}" for name, value in given.items())) < VARIABLES_BYTES_MAX


def test_the_functions_share_one_ledger():
    for name in ("GLEANER_STACK", "GLEANER_TABLE", "GLEANER_QUEUE_URL", "GLEANER_LOG"):
        for stack in variants(TEMPLATE):
            given = {role: it[name] for role, it in variables(stack).items() if name in it}
            # The rotator sends no tasks.
            assert given.keys() >= set(ROLES.values()) - {"rotator"}
            assert len(set(given.values())) == 1


def test_outputs_are_what_the_functions_use():
    for stack in variants(TEMPLATE):
        given = {name: it["Value"] for name, it in stack.outputs.items()}
        worker, receiver = variables(stack)["worker"], variables(stack)["receiver"]
        assert given["Table"] == worker["GLEANER_TABLE"]
        assert given["QueueUrl"] == worker["GLEANER_QUEUE_URL"]
        assert given["Bucket"] == worker["GLEANER_BUCKET"]
        assert given.get("ResultsPrefix") == worker.get("GLEANER_RESULTS_PREFIX")
        assert given["ApiUrl"] == worker["GLEANER_API_URL"]
        assert given["ApiKeySecretId"] == worker["GLEANER_API_KEY_SECRET_ID"]
        assert given["WebhookSecretIds"] == receiver["GLEANER_WEBHOOK_SECRET_IDS"]
        rotator = variables(stack)["rotator"]
        assert rotator["GLEANER_WEBHOOK_SECRET_IDS"] == receiver["GLEANER_WEBHOOK_SECRET_IDS"]
        assert given["WebhookUrl"].endswith(receiver["GLEANER_WEBHOOK_PATH"])


def test_samconfig_deploys_without_questions_left_over():
    config = tomllib.loads((REPOSITORY / "samconfig.toml").read_text(encoding="utf-8"))
    default = config["default"]
    assert default["global"]["parameters"] == {"stack_name": "gleaner"}
    deploy = default["deploy"]["parameters"]
    assert deploy["capabilities"] == "CAPABILITY_IAM", "no role has a name of its own"
    assert not deploy.keys() & {"region", "profile", "s3_bucket", "parameter_overrides"}
    assert default["validate"]["parameters"] == {"lint": True}


class TestPages:
    """docs/aws.md tells of each parameter and output, and of nothing else."""

    PAGE = REPOSITORY / "docs/aws.md"

    def rows(self, heading):
        section = self.PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
        return re.findall(r"^\| `(\w+)` \| (.+) \|$", section.split("\n## ")[0], re.M)

    def test_parameters_are_told_with_their_defaults(self):
        told = {name: rest.split(" | ")[0] for name, rest in self.rows("Parameters")}
        assert list(told) == [
            name
            for group in TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
            for name in group["Parameters"]
        ]
        for name, default in told.items():
            assert default.strip("`") == str(PARAMETERS[name]["Default"]), name

    def test_outputs_are_told(self):
        assert [name for name, _ in self.rows("Outputs")] == list(TEMPLATE["Outputs"])

    def test_commands_take_outputs_that_there_are(self):
        page = self.PAGE.read_text(encoding="utf-8")
        taken = set(re.findall(r"(?:\$\(|`)output (\w+)", page))
        assert taken and taken <= TEMPLATE["Outputs"].keys()
