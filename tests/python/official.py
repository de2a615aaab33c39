"""The platform's official client, pointed at a simulator, with a strict eye on its models."""

import json
import time
from datetime import datetime
from enum import Enum
from uuid import UUID

import geonode_scraper_sdk as sdk
import pytest
from geonode_scraper_sdk.exceptions import ApiException

from conftest import KEY

# Seconds that a condition may take to come true.
PATIENCE = 30
# Seconds that one call may take.
CALL_WITHIN = 30
# Fields that the simulator may send as null, where the client's schema has them absent instead; its
# models take both. `links` is that of a crawled page that failed.
MAY_BE_NULL = {"links"}


class Official:
    """One client of the vendor's, all of its APIs."""

    def __init__(self, url, key=KEY, within=CALL_WITHIN):
        self.within = within
        keys = {"ApiKeyAuth": key} if key else {}
        self.client = sdk.ApiClient(sdk.Configuration(host=url, api_key=keys, retries=False))
        extraction = sdk.ExtractionApi(self.client)
        self.extract = extraction.extract_v1_extract_post
        self.get_job = extraction.get_job_result_v1_extract_job_id_get
        self.list_jobs = extraction.list_jobs_v1_extract_jobs_get
        batch = sdk.BatchApi(self.client)
        self.create_batch = batch.create_batch_v1_batch_post
        self.get_batch = batch.get_batch_status_v1_batch_job_id_get
        self.list_batches = batch.list_batch_jobs_v1_batch_jobs_get
        self.cancel_batch = batch.cancel_batch_v1_batch_job_id_delete
        crawl = sdk.CrawlApi(self.client)
        self.create_crawl = crawl.create_crawl_v1_crawl_post
        self.get_crawl = crawl.get_crawl_status_v1_crawl_job_id_get
        self.list_crawls = crawl.list_crawl_jobs_v1_crawl_jobs_get
        self.cancel_crawl = crawl.cancel_crawl_v1_crawl_job_id_delete
        webhooks = sdk.WebhooksApi(self.client)
        self.create_webhook = webhooks.create_webhook_v1_webhooks_post
        self.get_webhook = webhooks.get_webhook_v1_webhooks_webhook_id_get
        self.list_webhooks = webhooks.list_webhooks_v1_webhooks_get
        self.update_webhook = webhooks.update_webhook_v1_webhooks_webhook_id_patch
        self.delete_webhook = webhooks.delete_webhook_v1_webhooks_webhook_id_delete
        self.rotate_secret = webhooks.rotate_secret_v1_webhooks_webhook_id_rotate_secret_post
        self.list_deliveries = webhooks.list_deliveries_v1_webhooks_webhook_id_deliveries_get
        self.statistics = sdk.StatisticsApi(self.client).get_statistics_v1_statistics_get
        self.concurrency = sdk.UsageApi(self.client).get_concurrency_usage_v1_usage_concurrency_get
        self.health = sdk.SystemApi(self.client).health_check_health_get

    def ask(self, status, method, /, *arguments, **options):
        """Makes a call that must be answered with `status`, and compares model and JSON."""
        answer = self.answer(method, *arguments, **options)
        assert answer.status_code == status
        return answer.data

    def answer(self, method, /, *arguments, **options):
        whole = getattr(method.__self__, method.__name__ + "_with_http_info")
        answer = whole(*arguments, _request_timeout=self.within, **options)
        if answer.data is not None:
            assert answer.headers["content-type"] == "application/json"
            assert_same(answer.data.to_dict(), json.loads(answer.raw_data))
        else:
            assert answer.raw_data == b""
        return answer

    def refuse(self, status, method, /, *arguments, **options):
        """Makes a call that must fail with `status`; returns the model of its body, if any."""
        with pytest.raises(ApiException) as caught:
            method(*arguments, _request_timeout=self.within, **options)
        error = caught.value
        assert error.status == status, error
        if error.data is not None:
            assert_same(error.data.to_dict(), json.loads(error.body))
        return error


def assert_same(shown, raw, place="$"):
    """Compares a model with the JSON that it was read from: no key more, no key less."""
    if isinstance(shown, dict):
        assert isinstance(raw, dict), place
        nulls = {key for key in MAY_BE_NULL if raw.get(key, "") is None}
        assert shown.keys() | nulls == raw.keys(), (place, shown.keys() ^ raw.keys())
        for key, value in shown.items():
            assert_same(value, raw[key], f"{place}.{key}")
    elif isinstance(shown, list):
        assert len(shown) == len(raw), place
        for index, (value, expected) in enumerate(zip(shown, raw)):
            assert_same(value, expected, f"{place}[{index}]")
    elif isinstance(shown, datetime):
        assert raw.endswith("Z"), place
        assert shown == datetime.fromisoformat(raw), place
        assert shown.utcoffset().total_seconds() == 0, place
    elif isinstance(shown, UUID):
        assert str(shown) == raw, place
    elif isinstance(shown, Enum):
        assert shown.value == raw, place
    else:
        assert (type(shown), shown) == (type(raw), raw), place


def until(ask, is_met):
    """Repeats a call until its answer is what was waited for; each takes a round trip."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = ask()
        if is_met(answer):
            return answer
        assert time.monotonic() < deadline, f"still {answer}"


def submission(url="https://example.com/page", **options):
    """The body of an asynchronous extraction."""
    return sdk.ExtractRequest(url=url, processing_mode=sdk.ProcessingMode.ASYNC, **options)
