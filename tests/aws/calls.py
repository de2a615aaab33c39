"""What the functions ask of the services, and what of it falls to one extract job."""

import collections
import hashlib

from emulator import ROOT

# Per extract job, receiver and worker together. docs/table.md says which they are.
TABLE_WRITES_MAX = 3
TABLE_READS_MAX = 2
# One for a batch, and more where one takes longer than a second.
PAUSE_READS_MAX = 0.5
QUEUE_REQUESTS_MAX = 2.2
OBJECT_PUTS_MAX = 1

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
READS = {"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"}
# What a function asks while it starts, to open its connections; it is not a job's.
STARTING = {"GetQueueAttributes"}


def access_key(function, role):
    """The access key under which the emulator lets a function call."""
    return "ASIA" + hashlib.sha256(f"{function}:{role}".encode()).hexdigest()[:16].upper()


def callers(world):
    """Who calls under which access key: the functions, and the person as `cli`."""
    keys = {access_key(*arns): name for name, arns in world.stack.roles.items()}
    return {world.person.access_key: "cli", **keys}


def counted(world):
    """Calls so far, by caller, service, operation and subject."""
    names = callers(world)
    counts = collections.Counter()
    for key, service, operation, subject, count in world.proxy.counts():
        if key == ROOT["AWS_ACCESS_KEY_ID"]:
            continue
        assert key in names, f"a call of nobody: {key} {service} {operation}"
        counts[names[key], service, operation, subject] += count
    return counts


class Share:
    """What receiver and worker together ask, divided by the jobs that they did it for."""

    def __init__(self, counts, batches, jobs):
        def total(service, wanted):
            return sum(
                count
                for (function, of, operation, subject), count in counts.items()
                if function in ("receiver", "worker")
                and of == service
                and wanted(operation, subject)
            )

        def of_the_job(subject):
            # The account's pauses are looked up at most once a second by each process.
            return subject != "control"

        self.table_writes = total("dynamodb", lambda op, on: op in WRITES and of_the_job(on)) / jobs
        self.table_reads = total("dynamodb", lambda op, on: op in READS and of_the_job(on)) / jobs
        self.pause_reads = total("dynamodb", lambda op, on: not of_the_job(on)) / jobs
        # Lambda takes and deletes a batch by one request each, which the proxy does not see.
        sent = total("sqs", lambda op, _: op not in STARTING)
        self.queue_requests = (sent + 2 * batches) / jobs
        self.tasks_per_batch = jobs / batches
        self.object_puts = total("s3", lambda op, _: op == "PutObject") / jobs
        self.object_reads = total("s3", lambda op, _: op != "PutObject") / jobs

    def lines(self):
        return [
            ("table writes", f"{self.table_writes:.2f}", f"at most {TABLE_WRITES_MAX}"),
            ("table reads", f"{self.table_reads:.2f}", f"at most {TABLE_READS_MAX}"),
            ("reads of pauses", f"{self.pause_reads:.2f}", f"at most {PAUSE_READS_MAX}"),
            ("queue requests", f"{self.queue_requests:.2f}", f"at most {QUEUE_REQUESTS_MAX}"),
            ("tasks in a batch", f"{self.tasks_per_batch:.2f}", ""),
            ("object puts", f"{self.object_puts:.2f}", f"at most {OBJECT_PUTS_MAX}"),
            ("object reads", f"{self.object_reads:.2f}", ""),
        ]


def table(counts):
    """The counts, a line each."""
    return [
        (f"{function} {service} {operation}", str(count), subject or "")
        for (function, service, operation, subject), count in sorted(
            by_kind(counts).items(), key=str
        )
    ]


def by_kind(counts):
    """The counts with secrets taken together."""
    summed = collections.Counter()
    for (function, service, operation, subject), count in counts.items():
        subject = None if service == "secretsmanager" else subject
        summed[function, service, operation, subject] += count
    return summed
