"""All that a run needs: the emulator, the proxy before it, the platform, and the deployed stack."""

import contextlib
import json
import pathlib
import subprocess
import tempfile
import uuid

import calls
import processes
import stack
from emulator import Emulator
from proxy import Proxy
from simulated import EVENTS, Simulator
from waiting import wait_until

# Short timings where the template has parameters for them.
PARAMETERS = {
    "Architecture": "x86_64",
    "BatchWindow": "0",
    "FunctionUrl": "enabled",
    "ScheduleMinutes": "1",
    "WorkerConcurrency": "2",
    "WorkerTimeout": "90",
}
# States in which a row owes nothing.
TERMINAL = {"stored", "superseded", "dead"}


class World:
    """A stack of its own, with its own platform; nothing is shared and everything is ended."""

    def __init__(self, programs, folder, parameters=None, **settings):
        self.programs = programs
        self.folder = folder
        with contextlib.ExitStack() as started:
            proxy_port = processes.free_port()
            self.emulator = Emulator(
                folder, processes.free_port(), f"http://127.0.0.1:{proxy_port}"
            )
            started.callback(self.emulator.stop)
            self.proxy = Proxy(folder, proxy_port, self.emulator.url)
            started.callback(self.proxy.stop)
            self.proxy.warm_up(self.emulator.client)
            self.simulator = Simulator(programs["gleaner"], folder, **settings)
            started.callback(self.simulator.stop)
            self.stack = stack.deploy(
                self.emulator,
                programs,
                {"ApiUrl": self.simulator.url, **PARAMETERS, **(parameters or {})},
            )
            # Keeps what would be overwritten, so that it is seen.
            self.emulator.client("s3").put_bucket_versioning(
                Bucket=self.output("Bucket"), VersioningConfiguration={"Status": "Enabled"}
            )
            self.stop = started.pop_all().close

    def output(self, name):
        return self.stack.outputs[name]

    def secret_of(self, kind):
        """The stack's secret for the webhook of this kind."""
        return dict(zip(EVENTS, self.output("WebhookSecretIds").split(","), strict=True))[kind]

    def invoke(self, function, event):
        """Runs a function once, as a person does in the console; returns what it answered."""
        payload, ended_well = self.attempt(function, event)
        assert ended_well, payload
        return payload

    def attempt(self, function, event):
        """The same where it may fail: what it answered, and whether it ended well."""
        name = self.output(stack.FUNCTIONS[function] + "Function")
        answer = self.emulator.client("lambda").invoke(
            FunctionName=name, Payload=json.dumps(event).encode()
        )
        return answer["Payload"].read(), "FunctionError" not in answer

    def kill(self, plans):
        """Has the proxy end functions at calls of theirs: bounds of calls, and how often."""
        keys = {name: key for key, name in calls.callers(self).items()}
        self.proxy.kill(
            [
                {
                    "access_key": keys[function],
                    "function": self.output(stack.FUNCTIONS[function] + "Function"),
                    "leader": self.emulator.process.pid,
                    **plan,
                }
                for function, plan in plans.items()
            ]
        )

    def killed(self):
        """How many processes of each function were ended so."""
        names = {self.output(f"{resource}Function"): it for it, resource in stack.FUNCTIONS.items()}
        return {names[name]: count for name, count in self.proxy.killed().items()}

    def tick(self):
        """Runs the scheduler once; its input is ignored."""
        return self.invoke("scheduler", {})

    def invocations(self, function):
        """How often a function has run. The emulator's metrics leave out runs by the queue."""
        return sum(line.startswith("START ") for line in self.logs(function))

    def logs(self, function):
        """What a function has logged, line by line."""
        pages = self.emulator.client("logs").get_paginator("filter_log_events").paginate(
            logGroupName=self.output(stack.FUNCTIONS[function] + "LogGroup")
        )
        return [event["message"].rstrip("\n") for page in pages for event in page["events"]]

    def items(self, prefix):
        """The table's items whose partition key begins so."""
        pages = self.emulator.client("dynamodb").get_paginator("scan").paginate(
            TableName=self.output("Table"), ConsistentRead=True
        )
        found = [item for page in pages for item in page["Items"]]
        return [item for item in found if item["pk"]["S"].startswith(prefix)]

    def rows(self):
        """The ledger's rows of jobs: state by kind and job id."""
        return {
            (item["sk"]["S"], item["pk"]["S"].removeprefix("job#")): item["state"]["S"]
            for item in self.items("job#")
        }

    def given_up(self):
        """Dead rows, with their reasons."""
        return [
            {"job_id": item["pk"]["S"].removeprefix("job#"), "reason": item["reason"]["S"]}
            for item in self.items("job#")
            if item["state"]["S"] == "dead"
        ]

    def jobs(self):
        """The platform's jobs."""
        return [job for page in self.simulator.books() for job in page["jobs"]]

    def owed(self):
        """Jobs that are unfinished at the platform, or that the ledger has no result of yet."""
        rows = self.rows()
        open_rows = {key for key, state in rows.items() if state not in TERMINAL}
        return open_rows | ({key_of(job) for job in self.ours(rows)} - rows.keys())

    def ours(self, rows):
        """The platform's jobs, without those that nobody has told the stack of so far."""
        return [job for job in self.jobs() if is_told(job) or key_of(job) in rows]

    def wait_until_settled(self, within, meanwhile):
        """Waits until nobody owes anything."""

        def settled():
            meanwhile()
            return not self.owed()

        try:
            wait_until("an end of all jobs", settled, within, pause=1.0)
        except AssertionError as late:
            owed = [item for item in self.items("job#") if item["state"]["S"] not in TERMINAL]
            raise AssertionError(f"{late}; owed: {self.owed()}; {owed[:3]}") from late

    def download(self):
        """Copies the bucket into a folder; returns it, and the keys written more than once."""
        s3 = self.emulator.client("s3")
        bucket = self.output("Bucket")
        root = pathlib.Path(tempfile.mkdtemp(prefix="results-", dir=self.folder))
        keys, again = set(), set()
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for version in page.get("Versions", []) + page.get("DeleteMarkers", []):
                (again if version["Key"] in keys else keys).add(version["Key"])
        for key in keys:
            file = root / key
            file.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(bucket, key, str(file))
        return root, sorted(again)

    def judge(self):
        """Has the demo's judge compare the platform's books with the bucket."""
        root, again = self.download()
        remains = {
            "books": self.simulator.books(),
            "given_up": self.given_up(),
            "changed": [str(root / key) for key in again],
        }
        judged = subprocess.run(
            [self.programs["judge"], root],
            input=json.dumps(remains).encode(),
            capture_output=True,
            check=False,
        )
        assert judged.returncode in (0, 1), judged.stderr.decode()
        return json.loads(judged.stdout)

    def depth(self, output):
        """Messages in a queue, waiting or under way."""
        attributes = self.emulator.client("sqs").get_queue_attributes(
            QueueUrl=self.output(output), AttributeNames=["All"]
        )["Attributes"]
        names = ("", "NotVisible", "Delayed")
        return sum(int(attributes[f"ApproximateNumberOfMessages{name}"]) for name in names)

    def restart(self, function, **variables):
        """Has the next invocation of a function start it anew, with these variables as well."""
        name = self.output(stack.FUNCTIONS[function] + "Function")
        functions = self.emulator.client("lambda")
        environment = functions.get_function_configuration(FunctionName=name)["Environment"]
        # A change of them starts it anew, also if it is none.
        functions.update_function_configuration(
            FunctionName=name, Environment={"Variables": {**environment["Variables"], **variables}}
        )


def key_of(job):
    """Its key in the ledger."""
    return job["kind"], job["job_id"]


def is_told(job):
    """Whether the stack was told of a job: it was submitted here, or word of it was accepted."""
    foreign = any(url.startswith("https://elsewhere.example/") for url in job["urls"])
    return not foreign or job["deliveries"]["accepted"] > 0


def programs_in(folder):
    """The programs of a build."""
    names = [*stack.FUNCTIONS, "gleaner", "judge"]
    found = {name: pathlib.Path(folder).resolve() / name for name in names}
    missing = [str(path) for path in found.values() if not path.is_file()]
    assert not missing, f"build them first: {missing}"
    return found
