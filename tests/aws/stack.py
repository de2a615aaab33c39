"""The stack: template.yaml with its overlay, deployed to the emulator as `sam deploy` does it."""

import io
import json
import pathlib
import subprocess
import tempfile
import zipfile

import yaml
from samtranslator.yaml_helper import yaml_parse

from waiting import wait_until

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parents[1]
NAME = "gleaner"
FUNCTIONS = {
    "receiver": "Receiver",
    "worker": "Worker",
    "scheduler": "Scheduler",
    "rotator": "Rotator",
}
CODE = "code"

# Seconds. The emulator takes less than one.
DEPLOYED_WITHIN = 60


class Stack:
    """The deployed stack."""

    def __init__(self, emulator, outputs, roles):
        self.emulator = emulator
        self.outputs = outputs
        self.roles = roles

    def url(self):
        """The function's own address, as it is reached on this machine."""
        name, path = self.address("FunctionWebhookUrl")
        return f"{self.emulator.url}/_aws/lambda-url/{name}/{path}"

    def api_url(self):
        """The API's address, as it is reached on this machine."""
        name, path = self.address("WebhookUrl")
        return f"{self.emulator.url}/_aws/execute-api/{name}/$default/{path}"

    def address(self, output):
        """The first word of an address, and its path."""
        host, _, path = self.outputs[output].removeprefix("https://").partition("/")
        return host.partition(".")[0], path

    def put_secret(self, secret, value):
        """Stores a value as a person does in the console."""
        self.emulator.client("secretsmanager").put_secret_value(
            SecretId=secret, SecretString=value
        )


def deploy(emulator, programs, parameters):
    """Deploys the template with these programs as its functions."""
    s3 = emulator.client("s3")
    location = {"LocationConstraint": s3.meta.region_name}
    s3.create_bucket(Bucket=CODE, CreateBucketConfiguration=location)
    document = template()
    for name, resource in FUNCTIONS.items():
        s3.put_object(Bucket=CODE, Key=f"{name}.zip", Body=package(programs[name]))
        document["Resources"][resource]["Properties"]["CodeUri"] = f"s3://{CODE}/{name}.zip"
    # A template of this size is read from a bucket, on AWS as well.
    s3.put_object(Bucket=CODE, Key="template.json", Body=json.dumps(document).encode())
    cloudformation = emulator.client("cloudformation")
    cloudformation.create_stack(
        StackName=NAME,
        TemplateURL=f"{emulator.url}/{CODE}/template.json",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ],
    )

    def ended():
        [stack] = cloudformation.describe_stacks(StackName=NAME)["Stacks"]
        return None if stack["StackStatus"].endswith("_IN_PROGRESS") else stack

    stack = wait_until("the deployment", ended, DEPLOYED_WITHIN)
    if stack["StackStatus"] != "CREATE_COMPLETE":
        events = cloudformation.describe_stack_events(StackName=NAME)["StackEvents"]
        reasons = [
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}"
            for event in events
            if event["ResourceStatus"].endswith("_FAILED")
        ]
        raise AssertionError(f"{stack['StackStatus']}: {reasons}")
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    for secret in [*outputs["WebhookSecretIds"].split(","), outputs["ApiKeySecretId"]]:
        take_value_away(emulator.client("secretsmanager"), secret)
    return Stack(emulator, outputs, roles(emulator, outputs))


def take_value_away(secrets, secret):
    """Leaves a secret without a version, as AWS makes it; the emulator gives it an empty one."""
    [version] = secrets.list_secret_version_ids(SecretId=secret)["Versions"]
    secrets.update_secret_version_stage(
        SecretId=secret, VersionStage="AWSCURRENT", RemoveFromVersionId=version["VersionId"]
    )


def roles(emulator, outputs):
    """The functions' own ARNs and those of their roles."""
    functions = emulator.client("lambda")
    found = {}
    for name, resource in FUNCTIONS.items():
        function = outputs[f"{resource}Function"]
        configuration = functions.get_function_configuration(FunctionName=function)
        found[name] = (configuration["FunctionArn"], configuration["Role"])
    return found


def template():
    """Reads the template with the overlay laid over it."""
    document = yaml_parse((REPOSITORY / "template.yaml").read_text(encoding="utf-8"))
    for change in yaml.safe_load((HERE / "overlay.yaml").read_text(encoding="utf-8")):
        *path, last = change["at"].split(".")
        place = document
        for name in path:
            place = step(place, name)
        assert change["reason"]
        there = step(place, last)
        if "remove" in change:
            place.remove(there) if isinstance(place, list) else place.pop(last)
        elif "add" in change:
            place[last] = [*(there if isinstance(there, list) else [there]), change["add"]]
        else:
            place[last] = change["set"]
    return document


def step(place, name):
    """Goes down one name; statements in a list are named by their `Sid`."""
    if isinstance(place, list):
        [found] = [it for it in place if it.get("Sid") == name or it.get("PolicyName") == name]
        return found
    return place[name]


def package(program):
    """Zips a program as `bootstrap`, without what only a debugger reads."""
    program = pathlib.Path(program)
    content = program.read_bytes()
    if content.startswith(b"\x7fELF"):
        with tempfile.NamedTemporaryFile() as stripped:
            subprocess.run(["strip", "--strip-debug", "-o", stripped.name, program], check=True)
            content = pathlib.Path(stripped.name).read_bytes()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        archive.writestr(entry, content)
    return memory.getvalue()
