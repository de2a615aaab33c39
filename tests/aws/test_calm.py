"""The deployed template and the real programs, where nothing goes wrong."""

import json

import pytest

import calls
from run import Run
from waiting import wait_until
from window import Window


class Calm(Run):
    """A run whose tasks come to the worker in batches, as Lambda makes them."""

    def submit(self, plan):
        with Window(self.world):
            self.submit_pages(plan)
            self.settle()
        counts = calls.counted(self.world)
        batches = self.world.invocations("worker")
        self.share = calls.Share(counts, batches, len(plan.pages))
        self.submit_parents(plan)

    def settle(self):
        # Of strangers' jobs nothing is known before their deliveries.
        wait_until("all deliveries", lambda: not self.world.simulator.pending(), self.within)
        super().settle()


@pytest.fixture(scope="module")
def run(make_world, jobs, tell):
    run = Calm(make_world(), jobs)
    tell(run.sheet("on the emulator", run.share.lines(), calls.table(run.counts)))
    return run


def test_every_job_is_stored_once(run):
    assert run.is_balanced(), run.judgement
    assert run.judgement["stored"] == len(run.jobs)
    assert set(run.rows.values()) == {"stored"}


def test_an_extract_job_costs_what_the_docs_say(run):
    assert run.share.table_writes <= calls.TABLE_WRITES_MAX
    assert run.share.table_reads <= calls.TABLE_READS_MAX
    assert run.share.pause_reads <= calls.PAUSE_READS_MAX
    assert run.share.queue_requests <= calls.QUEUE_REQUESTS_MAX
    assert run.share.object_puts <= calls.OBJECT_PUTS_MAX


def test_nothing_is_written_over_what_lies_there(run):
    conditions = {on for (_, _, operation, on) in run.counts if operation == "PutObject"}
    assert conditions == {"*"}


def test_nobody_asks_for_what_is_not_granted(run):
    assert run.world.proxy.denied() == []


def test_no_queue_holds_anything_at_the_end(run):
    assert run.world.depth("QueueUrl") == 0
    assert run.world.depth("DeadLetterQueueUrl") == 0


def test_nothing_is_logged_that_somebody_must_look_at(run):
    for function in ("receiver", "worker", "scheduler"):
        lines = [line for line in run.world.logs(function) if line.startswith("{")]
        assert lines, function
        levels = {json.loads(line).get("level") for line in lines}
        assert not levels & {"ERROR", "WARN"}, (function, lines[:5])


def test_the_judge_would_have_seen_it(run):
    s3, bucket = run.world.emulator.client("s3"), run.world.output("Bucket")
    versions = s3.list_object_versions(Bucket=bucket, Prefix="kind=extract/")["Versions"]
    overwritten, lost = versions[:2]
    content = s3.get_object(Bucket=bucket, Key=overwritten["Key"])["Body"].read()
    s3.put_object(Bucket=bucket, Key=overwritten["Key"], Body=content)
    s3.delete_object(Bucket=bucket, Key=lost["Key"], VersionId=lost["VersionId"])
    judgement = run.world.judge()
    assert (judgement["lost"], judgement["stored_twice"]) == (1, 1)
