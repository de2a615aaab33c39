"""Webhooks through the official client, and their deliveries on a real socket."""

import base64
import hashlib
import hmac
import json
import uuid
from datetime import datetime

import geonode_scraper_sdk as sdk
import pytest
from geonode_scraper_sdk import JobStatus, WebhookEventType

from official import Official, assert_same, submission, until
from receiver import Receiver

HOOK = "http://127.0.0.1:9/nobody-listens"
# A speed at which the last retry of a delivery comes within a second.
HASTE = 10_000.0


@pytest.fixture
def receiver():
    receivers = []

    def get(*statuses):
        receivers.append(Receiver(*statuses))
        return receivers[-1]

    yield get
    for receiver in receivers:
        receiver.close()


@pytest.fixture
def official(fresh_simulator):
    return Official(fresh_simulator().url)


def subscribe(official, url=HOOK, event_type=WebhookEventType.EXTRACT_COMPLETED, **options):
    request = sdk.WebhookCreate(url=url, event_type=event_type, **options)
    return official.ask(201, official.create_webhook, request)


def digest(secret, body):
    return hmac.new(secret.encode(), body, hashlib.sha256)


def settled_rows(official, webhook_id):
    """Reads the delivery log once nothing in it is pending."""
    ask = lambda: official.ask(200, official.list_deliveries, webhook_id)
    return until(ask, lambda log: log.items and all(row.status != "pending" for row in log.items))


class TestSubscriptions:
    def test_one_is_created_read_changed_and_deleted(self, official):
        created = subscribe(official, description="for a test")
        assert isinstance(created, sdk.WebhookCreateResponse)
        assert (created.url, created.description, created.is_active) == (HOOK, "for a test", True)
        assert created.event_type == WebhookEventType.EXTRACT_COMPLETED
        assert created.secret.startswith("whsec_") and created.updated_at == created.created_at

        read = official.ask(200, official.get_webhook, created.id)
        assert isinstance(read, sdk.WebhookResponse)
        assert read.to_dict().items() <= created.to_dict().items()

        change = sdk.WebhookUpdate(
            url=HOOK + "/2", is_active=False, event_type=WebhookEventType.CRAWL_COMPLETED
        )
        changed = official.ask(200, official.update_webhook, created.id, change)
        assert isinstance(changed, sdk.WebhookResponse)
        assert (changed.id, changed.url, changed.is_active) == (created.id, HOOK + "/2", False)
        assert changed.event_type == WebhookEventType.CRAWL_COMPLETED
        assert changed.description == "for a test" and changed.updated_at >= created.updated_at
        assert official.ask(200, official.get_webhook, created.id) == changed

        gone = official.answer(official.delete_webhook, created.id)
        assert (gone.status_code, gone.data) == (204, None)
        official.refuse(404, official.get_webhook, created.id)
        official.refuse(404, official.list_deliveries, created.id)
        official.refuse(404, official.delete_webhook, created.id)

    def test_they_are_listed_in_pages_without_secrets(self, official):
        created = [subscribe(official, event_type=event) for event in WebhookEventType]
        listed = official.ask(200, official.list_webhooks)
        assert isinstance(listed, sdk.WebhookListResponse)
        assert (listed.page, listed.page_size, listed.page_count) == (1, 100, 1)
        assert {webhook.id for webhook in listed.items} == {webhook.id for webhook in created}
        pages = [official.ask(200, official.list_webhooks, page=n, page_size=2) for n in (1, 2, 3)]
        assert [len(page.items) for page in pages] == [2, 1, 0]
        assert {page.page_count for page in pages} == {2}
        raw = official.answer(official.list_webhooks).raw_data
        assert not any(webhook.secret.encode() in raw for webhook in created)

    def test_a_rotation_answers_with_the_new_secret_alone(self, official):
        created = subscribe(official)
        rotated = official.ask(200, official.rotate_secret, created.id)
        assert isinstance(rotated, sdk.RotateSecretResponse)
        assert rotated.secret.startswith("whsec_") and rotated.secret != created.secret


class TestDeliveries:
    def test_an_extraction_is_delivered_signed_and_logged(self, official, receiver):
        hook = receiver()
        webhook = subscribe(official, hook.url)
        accepted = official.ask(202, official.extract, submission())
        delivery = hook.next()

        assert delivery.header("Content-Type") == "application/json"
        assert delivery.header("User-Agent") == "scraper-api-webhook/1.0"
        assert delivery.header("X-Webhook-Event") == "extract_completed"
        signature = "sha256=" + digest(webhook.secret, delivery.body).hexdigest()
        assert hmac.compare_digest(delivery.header("X-Webhook-Signature"), signature)

        envelope = json.loads(delivery.body)
        assert envelope.keys() == {"event", "webhook_id", "delivery_id", "timestamp", "data"}
        assert envelope["event"] == "extract_completed"
        assert envelope["webhook_id"] == str(webhook.id)
        assert envelope["delivery_id"] == delivery.header("X-Webhook-Delivery-Id")
        assert datetime.fromisoformat(envelope["timestamp"]).utcoffset().total_seconds() == 0
        # The event carries the whole job, as the API itself answers it.
        job = sdk.JobStatusResponse.from_dict(envelope["data"])
        assert_same(job.to_dict(), envelope["data"])
        assert job == official.ask(200, official.get_job, accepted.job_id)

        log = settled_rows(official, webhook.id)
        assert isinstance(log, sdk.DeliveryListResponse)
        assert (log.page, log.page_size, log.page_count) == (1, 100, 1)
        [row] = log.items
        assert (row.id, row.job_id) == (uuid.UUID(envelope["delivery_id"]), uuid.UUID(job.job_id))
        assert (row.status, row.http_status, row.attempt_number) == ("success", 202, 1)
        assert row.event_type == WebhookEventType.EXTRACT_COMPLETED
        assert row.delivered_at >= row.created_at >= job.completed_at
        assert (
            len(official.ask(200, official.list_deliveries, webhook.id, status="success").items)
            == 1
        )
        assert (
            official.ask(200, official.list_deliveries, webhook.id, status="abandoned").items == []
        )

    def test_batches_and_crawls_are_delivered_as_summaries(self, official, receiver):
        hook = receiver()
        events = (WebhookEventType.BATCH_COMPLETED, WebhookEventType.CRAWL_COMPLETED)
        batches, crawls = (subscribe(official, hook.url, event) for event in events)
        request = sdk.BatchRequest(urls=["https://example.com/"] * 3)
        batch_id = official.ask(202, official.create_batch, request).job_id
        delivery = hook.next()
        envelope = json.loads(delivery.body)
        assert delivery.header("X-Webhook-Event") == envelope["event"] == "batch_completed"
        assert digest(batches.secret, delivery.body).hexdigest() in delivery.header(
            "X-Webhook-Signature"
        )
        assert envelope["data"]["job_id"] == str(batch_id)
        assert envelope["data"]["completed_urls"] == 3 and "results" not in envelope["data"]

        request = sdk.CrawlRequest(url="https://example.com/?pages=5")
        crawl_id = official.ask(202, official.create_crawl, request).job_id
        delivery = hook.next()
        envelope = json.loads(delivery.body)
        assert delivery.header("X-Webhook-Event") == envelope["event"] == "crawl_completed"
        assert digest(crawls.secret, delivery.body).hexdigest() in delivery.header(
            "X-Webhook-Signature"
        )
        assert envelope["data"]["job_id"] == str(crawl_id)
        assert envelope["data"]["completed_pages"] == 5 and "results" not in envelope["data"]
        [row] = settled_rows(official, crawls.id).items
        assert (row.job_id, row.event_type) == (crawl_id, WebhookEventType.CRAWL_COMPLETED)

    @pytest.mark.parametrize("fault", ["fail_final", "cancelled"])
    def test_jobs_that_did_not_complete_are_delivered_too(self, fresh_simulator, receiver, fault):
        official = Official(fresh_simulator(faults={"jobs": {fault: 1.0}}).url)
        hook = receiver()
        subscribe(official, hook.url)
        official.ask(202, official.extract, submission())
        job = sdk.JobStatusResponse.from_dict(json.loads(hook.next().body)["data"])
        assert job.status == (JobStatus.FAILED if fault == "fail_final" else JobStatus.CANCELLED)

    def test_refused_attempts_are_repeated_with_rows_of_their_own(self, official, receiver):
        hook = receiver(503, 401, 204)
        webhook = subscribe(official, hook.url)
        official.ask(202, official.extract, submission())
        attempts = [hook.next() for _ in range(3)]
        ids = [attempt.header("X-Webhook-Delivery-Id") for attempt in attempts]
        assert len(set(ids)) == 3
        for attempt in attempts:
            signature = digest(webhook.secret, attempt.body).hexdigest()
            assert attempt.header("X-Webhook-Signature") == f"sha256={signature}"
        ask = lambda: official.ask(200, official.list_deliveries, webhook.id)
        log = until(ask, lambda log: any(row.status == "success" for row in log.items))
        rows = {row.attempt_number: row for row in log.items}
        assert [(row.status, row.http_status) for _, row in sorted(rows.items())] == [
            ("failed", 503),
            ("failed", 401),
            ("success", 204),
        ]
        assert [str(rows[number].id) for number in (1, 2, 3)] == ids
        assert rows[1].delivered_at is None and rows[3].delivered_at is not None

    def test_what_is_never_accepted_is_abandoned(self, fresh_simulator, receiver):
        official = Official(fresh_simulator(speed=HASTE).url)
        webhook = subscribe(official, receiver(500).url)
        official.ask(202, official.extract, submission())
        ask = lambda: official.ask(200, official.list_deliveries, webhook.id)
        log = until(ask, lambda log: any(row.status == "abandoned" for row in log.items))
        assert sorted(row.attempt_number for row in log.items) == [1, 2, 3, 4, 5, 6]
        assert {row.http_status for row in log.items} == {500}

    def test_nobody_answering_is_logged_without_a_status(self, fresh_simulator):
        official = Official(fresh_simulator(speed=HASTE).url)
        webhook = subscribe(official)
        official.ask(202, official.extract, submission())
        ask = lambda: official.ask(200, official.list_deliveries, webhook.id, status="abandoned")
        [row] = until(ask, lambda log: log.items).items
        assert (row.http_status, row.delivered_at) == (None, None)

    def test_a_row_may_stand_for_a_delivery(self, fresh_simulator, receiver):
        official = Official(fresh_simulator(webhooks={"log": "row_per_delivery"}).url)
        hook = receiver(503, 200)
        webhook = subscribe(official, hook.url)
        official.ask(202, official.extract, submission())
        attempts = [hook.next() for _ in range(2)]
        [delivery_id] = {attempt.header("X-Webhook-Delivery-Id") for attempt in attempts}
        ask = lambda: official.ask(200, official.list_deliveries, webhook.id)
        [row] = until(ask, lambda log: log.items[0].status == "success").items
        assert (str(row.id), row.attempt_number, row.http_status) == (delivery_id, 2, 200)

    def test_a_rotated_secret_signs_what_comes_after(self, official, receiver):
        hook = receiver()
        webhook = subscribe(official, hook.url)
        official.ask(202, official.extract, submission())
        before = hook.next()
        rotated = official.ask(200, official.rotate_secret, webhook.id)
        official.ask(202, official.extract, submission())
        after = hook.next()
        for delivery, secret in ((before, webhook.secret), (after, rotated.secret)):
            signature = digest(secret, delivery.body).hexdigest()
            assert delivery.header("X-Webhook-Signature") == f"sha256={signature}"

    @pytest.mark.parametrize("encoding", ["hex", "base64"])
    def test_other_encodings_of_the_signature(self, fresh_simulator, receiver, encoding):
        official = Official(fresh_simulator(webhooks={"signature": encoding}).url)
        hook = receiver()
        webhook = subscribe(official, hook.url)
        official.ask(202, official.extract, submission())
        delivery = hook.next()
        mac = digest(webhook.secret, delivery.body)
        expected = {"hex": mac.hexdigest(), "base64": base64.b64encode(mac.digest()).decode()}
        assert delivery.header("X-Webhook-Signature") == expected[encoding]

    def test_a_forged_delivery_does_not_verify(self, fresh_simulator, receiver):
        official = Official(fresh_simulator(faults={"deliveries": {"missigned": 1.0}}).url)
        hook = receiver()
        webhook = subscribe(official, hook.url)
        official.ask(202, official.extract, submission())
        delivery = hook.next()
        signature = digest(webhook.secret, delivery.body).hexdigest()
        assert delivery.header("X-Webhook-Signature") != f"sha256={signature}"

    def test_a_paused_webhook_hears_nothing(self, official, receiver):
        hook = receiver()
        paused = subscribe(official, hook.url)
        official.ask(200, official.update_webhook, paused.id, sdk.WebhookUpdate(is_active=False))
        official.ask(202, official.extract, submission("https://example.com/unheard"))
        official.ask(200, official.update_webhook, paused.id, sdk.WebhookUpdate(is_active=True))
        accepted = official.ask(202, official.extract, submission("https://example.com/heard"))
        assert json.loads(hook.next().body)["data"]["job_id"] == accepted.job_id
        assert len(settled_rows(official, paused.id).items) == 1

    def test_real_texts_are_delivered_byte_for_byte(self, demo, fresh_simulator, receiver):
        simulator = fresh_simulator(corpus=str(demo.corpus))
        official = Official(simulator.url)
        hook = receiver()
        webhook = subscribe(official, hook.url)
        formats = [sdk.OutputFormat.HTML, sdk.OutputFormat.MARKDOWN]
        total = 20
        for number in range(total):
            url = f"https://documents.example/{number}"
            official.ask(202, official.extract, submission(url, formats=formats))
        deliveries = [hook.next() for _ in range(total)]
        files = {job["job_id"]: job["parts"][0] for job in simulator.books()}
        for delivery in deliveries:
            signature = digest(webhook.secret, delivery.body).hexdigest()
            assert delivery.header("X-Webhook-Signature") == f"sha256={signature}"
            job = json.loads(delivery.body)["data"]
            for name, text in job["data"].items():
                source = demo.corpus / files[job["job_id"]][name]["file"]
                assert text.encode() == source.read_bytes()
