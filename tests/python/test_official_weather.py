"""Whatever goes wrong, the official client's models accept every 2xx answer."""

import geonode_scraper_sdk as sdk
import pytest
import urllib3
from geonode_scraper_sdk import JobStatus, OutputFormat, WebhookEventType
from geonode_scraper_sdk.exceptions import ApiException

from official import Official, submission
from receiver import Receiver

JOBS = 200
BATCHES = 12
CRAWLS = 12
# Seconds that a call may take; hangs are cut off sooner by the simulator.
CALL_WITHIN = 10
# Pages of a list read before it counts as endless.
PAGES_MAX = 60
# Calls of one kind made until one is answered.
TRIES_MAX = 40

# Beyond the harsh preset: lists that lie, rows without job ids, answers without their fields.
MORE = {
    "lists": {"capped": 0.5, "lying_page_count": 0.5, "shifting_pages": 0.3},
    "deliveries": {"null_job_id": 0.5},
    "jobs": {"null_fields": 0.3, "vanished": 0.05},
    "api": {"lost_webhook_answers": 0.2},
}

BOTH = [OutputFormat.HTML, OutputFormat.MARKDOWN]


class Weather:
    """Makes calls until they are answered, and counts what came instead."""

    def __init__(self, official):
        self.official = official
        self.answers = []
        self.troubles = {}

    def once(self, method, *arguments, **options):
        """Returns a 2xx answer's model, or nothing; a model that does not fit is an error."""
        try:
            answer = self.official.answer(method, *arguments, **options)
        except ApiException as error:
            assert error.status in (402, 404, 409, 422, 429, 500, 502, 503), error
            # The client knows the shape of some statuses only; the others have the flat one.
            assert error.data or not error.body or sdk.ErrorResponse.from_json(error.body)
            self.count(error.status)
            return None
        except urllib3.exceptions.HTTPError as error:
            self.count(type(error).__name__)
            return None
        assert 200 <= answer.status_code < 300
        self.answers.append(answer.data)
        return answer.data

    def count(self, trouble):
        self.troubles[trouble] = self.troubles.get(trouble, 0) + 1

    def patiently(self, method, *arguments, **options):
        for _ in range(TRIES_MAX):
            answer = self.once(method, *arguments, **options)
            if answer is not None:
                return answer
        raise AssertionError(f"no answer to {method.__name__}")

    def walk(self, method, *arguments, **options):
        """Reads a list to its empty page, whatever its `page_count` says."""
        for page in range(1, PAGES_MAX):
            answer = self.patiently(method, *arguments, page=page, page_size=20, **options)
            rows = answer.items if hasattr(answer, "items") else answer.jobs
            if not rows:
                return
            yield from rows
        raise AssertionError("the list does not end")


@pytest.fixture
def simulator(fresh_simulator):
    return fresh_simulator(hang_max_secs=0.2, list_lag_secs=1.0)


def test_every_answer_fits_its_model(simulator):
    receiver = Receiver(202)
    official = Official(simulator.url, within=CALL_WITHIN)
    weather = Weather(official)
    hooks = [
        official.ask(
            201, official.create_webhook, sdk.WebhookCreate(url=receiver.url, event_type=event)
        )
        for event in WebhookEventType
    ]
    simulator.backstage("POST", "/sim/faults", "harsh")
    simulator.change_faults(**MORE)
    try:
        drive(weather, hooks)
    finally:
        receiver.close()
    check_variety(simulator, weather)


def drive(weather, hooks):
    """Submits, reads, lists and manages in the storm."""
    official = weather.official
    for number in range(JOBS):
        weather.once(official.extract, submission(f"https://example.com/{number}", formats=BOTH))
    for number in range(BATCHES):
        urls = [f"https://example.com/{number}/{item}" for item in range(30)]
        weather.once(official.create_batch, sdk.BatchRequest(urls=urls, formats=BOTH))
    for number in range(CRAWLS):
        seed = f"https://{number}.example.com/?pages=25"
        weather.once(official.create_crawl, sdk.CrawlRequest(url=seed, formats=BOTH))
    for number in range(10):
        weather.once(official.extract, sdk.ExtractRequest(url=f"https://example.com/sync/{number}"))
    for job in list(weather.walk(official.list_jobs)):
        weather.once(official.get_job, str(job.job_id))
    for listing, get, cancel in (
        (official.list_batches, official.get_batch, official.cancel_batch),
        (official.list_crawls, official.get_crawl, official.cancel_crawl),
    ):
        for job in list(weather.walk(listing)):
            for page in (1, 2, 3, 4):
                weather.once(get, job.job_id, page=page)
            if job.status == JobStatus.PROCESSING:
                weather.patiently(cancel, job.job_id)
    for hook in hooks:
        list(weather.walk(official.list_deliveries, hook.id))
        change = sdk.WebhookUpdate(description="changed in the storm")
        weather.patiently(official.update_webhook, hook.id, change)
        weather.patiently(official.get_webhook, hook.id)
        weather.patiently(official.rotate_secret, hook.id)
    list(weather.walk(official.list_webhooks))
    weather.patiently(official.statistics)
    weather.patiently(official.concurrency)


def check_variety(simulator, weather):
    """The storm was one: each kind of trouble happened, and each kind of answer was seen."""
    counters = simulator.counters()
    assert counters["counters"]["transport"].keys() >= {
        "lost_answer",
        "hang",
        "cut_body",
        "slow_body",
    }
    assert {429, 500, 502, 503, 404} <= weather.troubles.keys()

    def seen(model):
        return [answer for answer in weather.answers if isinstance(answer, model)]

    for model in (
        sdk.ExtractAsyncResponse,
        sdk.BatchAccepted,
        sdk.CrawlAccepted,
        sdk.BatchStatusResponse,
        sdk.CrawlStatusResponse,
        sdk.WebhookResponse,
        sdk.WebhookListResponse,
        sdk.RotateSecretResponse,
        sdk.StatisticsResponse,
        sdk.ConcurrencyUsageResponse,
    ):
        assert seen(model), model
    jobs = seen(sdk.JobStatusResponse)
    assert {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED} <= {
        job.status for job in jobs
    }
    completed = [job for job in jobs if job.status == JobStatus.COMPLETED]
    assert {job.data is None for job in completed} == {True, False}
    failed = [job for job in jobs if job.status == JobStatus.FAILED]
    assert {job.error is None for job in failed} == {True, False}
    lists = seen(sdk.JobCollectionResponse)
    assert {page.is_capped for page in lists} == {True, False}
    assert any(page.jobs and page.page_count == 0 for page in lists)
    rows = [row for log in seen(sdk.DeliveryListResponse) for row in log.items]
    assert {row.job_id is None for row in rows} == {True, False}
    items = [item for batch in seen(sdk.BatchStatusResponse) for item in batch.results]
    assert {item.status for item in items} >= {"completed", "failed"}
