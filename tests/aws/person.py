"""A person at the command line, with the rights that docs/iam.json gives to one."""

import json
import subprocess

import stack
from emulator import ACCOUNT, REGION

USER = "somebody"
# Seconds. A submission waits for the platform and the emulator only.
DONE_WITHIN = 300
# An audit for which no job is so young that it may be unknown to the ledger.
STRICT_AUDIT = ("audit", "--set", "reconcile.threshold=1s", "--set", "reconcile.every=1s")
# Characters of its output that an assertion shows.
TOLD_MAX = 2000


class Person:
    """Somebody who runs `gleaner` on the stack."""

    def __init__(self, world, variables):
        users = world.emulator.client("iam")
        users.create_user(UserName=USER)
        users.put_user_policy(
            UserName=USER, PolicyName="gleaner", PolicyDocument=json.dumps(policy(world))
        )
        key = users.create_access_key(UserName=USER)["AccessKey"]
        self.access_key = key["AccessKeyId"]
        self.program = world.programs["gleaner"]
        self.folder = world.folder
        self.environment = {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            "AWS_ENDPOINT_URL": world.proxy.url,
            "AWS_REGION": REGION,
            "GLEANER_BACKEND": "aws",
            "GLEANER_STACK": stack.NAME,
            "HOME": str(world.folder),
            "PATH": "/usr/bin:/bin",
            **variables,
        }

    def gleaner(self, *arguments, lines=(), expected=0):
        """Runs the program; returns what it prints, line by line."""
        done = subprocess.run(
            [self.program, *arguments, "--json"],
            cwd=self.folder,
            env=self.environment,
            input="".join(f"{line}\n" for line in lines).encode(),
            capture_output=True,
            timeout=DONE_WITHIN,
            check=False,
        )
        told = done.stderr.decode(), done.stdout.decode()[-TOLD_MAX:]
        assert done.returncode == expected, (arguments, done.returncode, *told)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def listed(self, kind, *arguments, expected=0):
        """What the program prints of one type."""
        return [row for row in self.gleaner(*arguments, expected=expected) if row["type"] == kind]

    def submit(self, urls, *how):
        """Submits these URLs, of which each must be accepted; returns the ids of the jobs."""
        formats = ("--format", "html", "--format", "markdown")
        rows = self.gleaner("submit", "-", *how, *formats, lines=urls)
        return [row["job_id"] for row in rows if row["type"] == "submission"]


def policy(world):
    """The rights of docs/iam.json, for this stack."""
    rights = json.loads((stack.REPOSITORY / "docs/iam.json").read_text(encoding="utf-8"))
    named = resources(world.stack.outputs)
    statements = []
    for right in rights["roles"]["cli"]:
        # The emulator asks for a right of its own name for each call; AWS knows no such right.
        batch = ["sqs:SendMessageBatch"] if right["action"] == "sqs:SendMessage" else []
        statements.append(
            {
                "Effect": "Allow",
                "Action": [right["action"], *batch],
                "Resource": named[right["on"]],
            }
        )
    return {"Version": "2012-10-17", "Statement": statements}


def resources(outputs):
    """The stack's resources, as docs/iam.json names them."""
    here = f"{REGION}:{ACCOUNT}"
    table = f"arn:aws:dynamodb:{here}:table/{outputs['Table']}"
    bucket = f"arn:aws:s3:::{outputs['Bucket']}"
    return {
        "ApiKeySecret": outputs["ApiKeySecretId"],
        "Bucket": bucket,
        "DeadLetterQueue": f"arn:aws:sqs:{here}:{outputs['DeadLetterQueueUrl'].rpartition('/')[2]}",
        "Queue": f"arn:aws:sqs:{here}:{outputs['QueueUrl'].rpartition('/')[2]}",
        "Results": f"{bucket}/kind=*",
        "Stack": f"arn:aws:cloudformation:{here}:stack/{stack.NAME}/*",
        "Table": table,
        "Table/index/due": f"{table}/index/due",
        "Table/index/listing": f"{table}/index/listing",
        "WebhookSecrets": outputs["WebhookSecretIds"].split(","),
    }
