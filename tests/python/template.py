"""The deployment template: read, evaluated for given parameters, and translated as SAM does it."""

import copy
import json
import os
import re

import pytest
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

from conftest import REPOSITORY

REGION = "eu-central-1"
ACCOUNT = "123456789012"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NoValue": None,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "gleaner",
    "AWS::URLSuffix": "amazonaws.com",
}
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:gleaner/webhook-"

# Every parameter that switches something on or off, the other way round than by default.
EVERYTHING = {
    "AlarmEmail": "somebody@example.org",
    "ApiKeySecretArn": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:gleaner/api-key-AbCdEf",
    "EnvelopeEvents": "extract_completed=extract",
    "EnvelopeJobId": "/data/job_id",
    "FunctionUrl": "enabled",
    "QuietHours": "24",
    "ResultsPrefix": "gleaner/results",
    "RotationDays": "30",
    "RotationStrategy": "in-place",
    "PreviousGrace": "5m",
    "SecretsKmsKeyArn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d",
    "SigningHeaders": "x-signature",
    "SigningScheme": "hmac = {}",
    "Tracing": "enabled",
    "Webhooks": "off",
    "WebhookSecretArns": f"{SECRET}AbCdEf,{SECRET}GhIjKl",
}


def load():
    """Reads the template; short forms of functions become long ones."""
    return yaml_parse((REPOSITORY / "template.yaml").read_text(encoding="utf-8"))


def translate(document, **parameters):
    """Makes plain CloudFormation of the template, as AWS does it before it deploys."""
    os.environ.setdefault("AWS_DEFAULT_REGION", REGION)
    document = copy.deepcopy(document)
    for resource in functions(document).values():
        # What `sam deploy` makes of a folder.
        resource["Properties"]["CodeUri"] = "s3://code/function.zip"
    values = {name: spec.get("Default") for name, spec in document["Parameters"].items()}
    translator = Translator({}, Parser())
    return translator.translate(document, {**PSEUDO, **values, **parameters})


def functions(document):
    """The functions by their logical ids."""
    kinds = ("AWS::Serverless::Function", "AWS::Lambda::Function")
    return {name: it for name, it in document["Resources"].items() if it["Type"] in kinds}


class Stack:
    """The template as it is deployed with some parameters.

    A reference to a resource becomes the text `${Name}`, one of its attributes `${Name.Attribute}`.
    What a condition leaves out is left out.
    """

    def __init__(self, document, **parameters):
        self.document = document
        specs = document["Parameters"]
        unknown = parameters.keys() - specs.keys()
        assert not unknown, unknown
        self.parameters = {}
        for name, spec in specs.items():
            assert spec["Type"] in ("String", "Number"), name
            self.parameters[name] = str(parameters.get(name, spec.get("Default")))
        self.resources = self.section("Resources")
        self.outputs = self.section("Outputs")

    def section(self, name):
        return {
            key: {part: self.value(value) for part, value in it.items()}
            for key, it in self.document[name].items()
            if self.holds(it.get("Condition"))
        }

    def of_type(self, kind):
        return {name: it for name, it in self.resources.items() if it["Type"] == kind}

    def properties(self, name):
        return self.resources[name]["Properties"]

    def holds(self, condition):
        if condition is None:
            return True
        if isinstance(condition, str):
            return self.holds(self.document["Conditions"][condition])
        [(function, argument)] = condition.items()
        match function:
            case "Condition":
                return self.holds(argument)
            case "Fn::Not":
                return not self.holds(argument[0])
            case "Fn::And":
                return all(self.holds(part) for part in argument)
            case "Fn::Or":
                return any(self.holds(part) for part in argument)
            case "Fn::Equals":
                one, other = (str(self.value(side)) for side in argument)
                return one == other
        raise AssertionError(f"{function} is not known here")

    def value(self, it):
        if isinstance(it, list):
            values = [self.value(part) for part in it]
            return [value for value in values if value is not None]
        if not isinstance(it, dict):
            return it
        if len(it) == 1:
            [(function, argument)] = it.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self.function(function, argument)
        values = {key: self.value(part) for key, part in it.items()}
        return {key: value for key, value in values.items() if value is not None}

    def function(self, function, argument):
        match function:
            case "Ref":
                return self.reference(argument)
            case "Fn::GetAtt":
                name = argument if isinstance(argument, str) else ".".join(argument)
                return self.reference(name)
            case "Fn::If":
                condition, then, otherwise = argument
                return self.value(then if self.holds(condition) else otherwise)
            case "Fn::FindInMap":
                name, first, second = (self.value(part) for part in argument)
                return self.document["Mappings"][name][first][second]
            case "Fn::Join":
                separator, parts = argument
                return separator.join(map(str, self.value(parts)))
            case "Fn::Split":
                separator, text = argument
                return self.value(text).split(separator)
            case "Fn::Select":
                index, parts = argument
                parts = self.value(parts)
                # An attribute has its parts only once it is deployed.
                return parts[int(index)] if len(parts) > int(index) else f"{parts[0]}[{index}]"
            case "Fn::Sub":
                text, own = argument if isinstance(argument, list) else (argument, {})
                own = self.value(own)
                named = lambda match: str(own.get(match[1]) or self.reference(match[1]))
                return re.sub(r"\$\{([^!][^}]*)\}", named, text)
        raise AssertionError(f"{function} is not known here")

    def reference(self, name):
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.parameters:
            return self.parameters[name]
        resource = self.document["Resources"].get(name.split(".")[0])
        assert resource is not None, f"{name} is nothing"
        assert self.holds(resource.get("Condition")), f"{name} is not there with these parameters"
        return f"${{{name}}}"


def variants(document):
    """The stacks that the rules are checked on: by default, everything switched, each choice."""
    yield Stack(document)
    yield Stack(document, **EVERYTHING)
    # Off with webhooks on, which `EVERYTHING` cannot show.
    yield Stack(document, MissedJobs="0")
    for parameter in ("WorkerTimeout", "ScheduleMinutes", "WebhookKinds"):
        for value in document["Parameters"][parameter]["AllowedValues"]:
            yield Stack(document, **{parameter: value})
    # With the secrets that the stack makes, all of them or some.
    for kinds in ("extract,batch,crawl", "crawl"):
        yield Stack(document, RotationDays="30", WebhookKinds=kinds)


def references(it):
    """The names that a value refers to, parameters and resources alike."""
    if isinstance(it, list):
        for part in it:
            yield from references(part)
    elif isinstance(it, dict):
        for key, part in it.items():
            if key == "Ref":
                yield part
            elif key == "Fn::GetAtt":
                yield part.split(".")[0] if isinstance(part, str) else part[0]
            elif key == "Fn::Sub":
                text, own = part if isinstance(part, list) else (part, {})
                names = re.findall(r"\$\{([^!}.]+)", text)
                yield from (name for name in names if name not in own)
                yield from references(own)
            else:
                yield from references(part)


GONE = object()


class Rules:
    """Rules about the template, each with changes of the template that it must object to."""

    def __init__(self):
        self.rules = []

    def rule(self, *changes):
        """Adds a function that takes a stack and yields what is wrong with it."""

        def add(function):
            assert changes, "a rule that nothing breaks says nothing"
            self.rules.append((function, changes))
            return function

        return add

    def each(self):
        """The rules, by name, for pytest to go through."""
        return [pytest.param(rule, id=rule.__name__) for rule, _ in self.rules]

    def each_change(self):
        """Each rule with each change that breaks it."""
        shown = lambda value: "gone" if value is GONE else json.dumps(value)[:40]
        return [
            pytest.param(rule, path, value, id=f"{rule.__name__}: {path} = {shown(value)}")
            for rule, changes in self.rules
            for path, value in changes
        ]


def findings(rule, document):
    """What a rule says about each variant of the template, each text once."""
    said = (text for stack in variants(document) for text in rule(stack))
    return list(dict.fromkeys(said))


def changed(document, path, value):
    """A copy of the template in which one place has another value.

    A path begins with a resource, unless it names another section.
    """
    document = copy.deepcopy(document)
    steps = path.split("/")
    if steps[0] not in document:
        steps.insert(0, "Resources")
    *steps, last = steps
    place = document
    for step in steps:
        place = place[int(step) if isinstance(place, list) else step]
    last = int(last) if isinstance(place, list) else last
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return document
