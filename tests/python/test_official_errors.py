"""Every refusal of the simulator, as the platform's official client sees it."""

import json
import uuid

import geonode_scraper_sdk as sdk
import pytest
import urllib3
from geonode_scraper_sdk import exceptions
from geonode_scraper_sdk.exceptions import ApiException

from official import Official, submission, until

NOBODY = uuid.UUID("00000000-0000-4000-8000-000000000000")
HOOK = "http://127.0.0.1:9/nobody-listens"

# The client warns when it is made to send what it would not send by itself.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


@pytest.fixture
def official(start_simulator):
    return Official(start_simulator().url)


def webhook(**options):
    return sdk.WebhookCreate(url=HOOK, event_type=sdk.WebhookEventType.EXTRACT_COMPLETED, **options)


def batch():
    return sdk.BatchRequest(urls=["https://example.com/"])


def crawl():
    return sdk.CrawlRequest(url="https://example.com/")


# Name of the client's method and arguments. Calls about batches and crawls document no error body.
FLAT = {
    "extract": [submission()],
    "get_job": [str(NOBODY)],
    "list_jobs": [],
    "create_webhook": [webhook()],
    "get_webhook": [NOBODY],
    "list_webhooks": [],
    "update_webhook": [NOBODY, sdk.WebhookUpdate(is_active=False)],
    "delete_webhook": [NOBODY],
    "rotate_secret": [NOBODY],
    "list_deliveries": [NOBODY],
    "statistics": [],
    "concurrency": [],
}
BARE = {
    "create_batch": [batch()],
    "get_batch": [NOBODY],
    "list_batches": [],
    "cancel_batch": [NOBODY],
    "create_crawl": [crawl()],
    "get_crawl": [NOBODY],
    "list_crawls": [],
    "cancel_crawl": [NOBODY],
}


def check_flat(error, code, retryable):
    assert isinstance(error.data, sdk.ErrorResponse), error
    assert (error.data.code, error.data.retryable) == (code, retryable)
    assert error.data.message and uuid.UUID(error.data.correlation_id)
    assert error.data.details is None


def check_bare(error):
    assert (error.data, error.body) == (None, "")


class TestUnauthorized:
    @pytest.mark.parametrize("key", ["wrong", None])
    @pytest.mark.parametrize("name", FLAT)
    def test_with_a_body(self, start_simulator, name, key):
        stranger = Official(start_simulator().url, key=key)
        error = stranger.refuse(401, getattr(stranger, name), *FLAT[name])
        assert isinstance(error, exceptions.UnauthorizedException)
        check_flat(error, "UNAUTHORIZED", False)

    @pytest.mark.parametrize("name", BARE)
    def test_without_a_body(self, start_simulator, name):
        stranger = Official(start_simulator().url, key="wrong")
        check_bare(stranger.refuse(401, getattr(stranger, name), *BARE[name]))


class TestMissing:
    def test_a_job(self, official):
        for job_id in (str(NOBODY), "no-uuid"):
            error = official.refuse(404, official.get_job, job_id)
            assert isinstance(error, exceptions.NotFoundException)
            check_flat(error, "JOB_NOT_FOUND", False)

    @pytest.mark.parametrize("name", ["get_batch", "cancel_batch", "get_crawl", "cancel_crawl"])
    def test_a_batch_or_crawl(self, official, name):
        check_bare(official.refuse(404, getattr(official, name), NOBODY))

    @pytest.mark.parametrize(
        "name",
        ["get_webhook", "update_webhook", "delete_webhook", "rotate_secret", "list_deliveries"],
    )
    def test_a_webhook(self, official, name):
        error = official.refuse(404, getattr(official, name), *FLAT[name])
        check_flat(error, "WEBHOOK_NOT_FOUND", False)

    def test_a_job_is_found_under_its_own_kind_only(self, official):
        accepted = official.ask(202, official.create_batch, batch())
        check_bare(official.refuse(404, official.get_crawl, accepted.job_id))
        official.refuse(404, official.get_job, str(accepted.job_id))


class TestConflict:
    def test_a_finished_batch_or_crawl_cannot_be_cancelled(self, official):
        accepted = official.ask(202, official.create_batch, batch())
        error = official.refuse(409, official.cancel_batch, accepted.job_id)
        assert isinstance(error, exceptions.ConflictException)
        check_bare(error)
        accepted = official.ask(202, official.create_crawl, crawl())
        check_bare(official.refuse(409, official.cancel_crawl, accepted.job_id))


class TestInvalid:
    def test_an_address_that_cannot_be_fetched(self, official):
        error = official.refuse(400, official.extract, submission("no address"))
        assert isinstance(error, exceptions.BadRequestException)
        check_flat(error, "INVALID_URL", False)

    def test_a_body_against_the_rules(self, official):
        """The first meaning of a 422: the client's model of the second one does not fit it."""
        request = sdk.ExtractRequest.model_construct(url="", formats=["pdf"], timeout=1)
        error = official.refuse(422, official.extract, request)
        assert isinstance(error, exceptions.UnprocessableEntityException) and error.data is None
        refused = sdk.HTTPValidationError.from_json(error.body)
        assert refused.to_dict() == json.loads(error.body)
        places = [[part.actual_instance for part in problem.loc] for problem in refused.detail]
        assert places == [["body", "url"], ["body", "timeout"], ["body", "formats"]]
        assert all(problem.msg and problem.type for problem in refused.detail)

    def test_a_failed_extraction(self, fresh_simulator):
        """The second meaning of a 422."""
        simulator = fresh_simulator(faults={"jobs": {"fail_retryable": 1.0}})
        official = Official(simulator.url)
        error = official.refuse(
            422, official.extract, sdk.ExtractRequest(url="https://example.com/")
        )
        assert isinstance(error.data, sdk.ExtractionErrorResponse)
        assert error.data.tokens_charged == 0 and error.data.error.retryable is True
        assert isinstance(error.data.error.code, sdk.ExtractionErrorCode)
        assert uuid.UUID(error.data.error.correlation_id)

    def test_an_extraction_over_its_budget(self, fresh_simulator):
        simulator = fresh_simulator(speed=1.0, job_median_secs=60.0, job_sigma=0.0)
        official = Official(simulator.url)
        request = sdk.ExtractRequest(url="https://example.com/", timeout=1_000)
        error = official.refuse(422, official.extract, request)
        assert error.data.error.code == sdk.ExtractionErrorCode.TIMEOUT

    @pytest.mark.parametrize("urls", [[], ["https://example.com/"] * 1_001, ["no address"]])
    def test_a_batch_against_the_rules(self, official, urls):
        error = official.refuse(
            422, official.create_batch, sdk.BatchRequest.model_construct(urls=urls)
        )
        check_bare(error)

    def test_a_batch_that_must_not_hold_invalid_addresses(self, official):
        urls = ["https://example.com/", "no address"]
        request = sdk.BatchRequest(urls=urls, ignore_invalid_urls=False)
        check_bare(official.refuse(422, official.create_batch, request))

    @pytest.mark.parametrize("wrong", [{"depth": 11}, {"limit": 10_001}, {"url": ""}, {"url": "x"}])
    def test_a_crawl_against_the_rules(self, official, wrong):
        request = sdk.CrawlRequest.model_construct(**{"url": "https://example.com/", **wrong})
        check_bare(official.refuse(422, official.create_crawl, request))

    @pytest.mark.parametrize("name", ["list_jobs", "list_webhooks"])
    def test_a_page_size_against_the_rules(self, official, name):
        error = official.refuse(422, getattr(official, name), page_size=0)
        assert isinstance(error.data, sdk.HTTPValidationError)
        [problem] = error.data.detail
        assert [part.actual_instance for part in problem.loc] == ["query", "page_size"]

    @pytest.mark.parametrize(
        "path",
        [
            "/v1/batch/no-uuid",
            "/v1/crawl/no-uuid",
            "/v1/webhooks/no-uuid",
            "/v1/extract/jobs?status=done",
            "/v1/extract/jobs?output=pdf",
            "/v1/batch/jobs?page=0",
            "/v1/crawl/jobs?page_size=101",
            "/v1/statistics?start_date=yesterday",
        ],
    )
    def test_what_the_client_itself_would_not_send(self, start_simulator, path):
        answer = start_simulator().request("GET", path)
        assert answer.status == 422
        refused = sdk.HTTPValidationError.from_json(answer.data)
        assert refused.to_dict() == json.loads(answer.data)
        assert len(refused.detail) == 1

    def test_a_webhook_against_the_rules(self, official):
        for wrong in ({"url": "no address"}, {"url": ""}, {"event_type": "extract_failed"}):
            body = {"url": HOOK, "event_type": "extract_completed", **wrong}
            request = sdk.WebhookCreate.model_construct(**body)
            check_flat(
                official.refuse(422, official.create_webhook, request), "VALIDATION_ERROR", False
            )

    def test_one_webhook_too_many(self, fresh_simulator):
        official = Official(fresh_simulator().url)
        for _ in range(10):
            official.ask(201, official.create_webhook, webhook())
        error = official.refuse(422, official.create_webhook, webhook())
        check_flat(error, "WEBHOOK_LIMIT_REACHED", False)


class TestAccount:
    def test_no_tokens_left(self, fresh_simulator):
        simulator = fresh_simulator(faults={"api": {"payment_required": 1.0}})
        official = Official(simulator.url)
        error = official.refuse(402, official.extract, submission())
        assert type(error) is ApiException
        check_flat(error, "PAYMENT_REQUIRED", False)
        check_bare(official.refuse(402, official.create_crawl, crawl()))
        # A batch has no such answer.
        official.ask(202, official.create_batch, batch())

    def test_all_work_slots_in_use(self, fresh_simulator):
        official = Official(fresh_simulator(job_median_secs=1e6, work_concurrency_limit=1).url)
        official.ask(202, official.extract, submission())
        error = official.refuse(429, official.extract, submission())
        check_flat(error, "WORK_CONCURRENCY_LIMITED", True)
        for method, request in ((official.create_batch, batch()), (official.create_crawl, crawl())):
            error = official.refuse(429, method, request)
            assert error.data is None
            assert sdk.ErrorResponse.from_json(error.body).code == "WORK_CONCURRENCY_LIMITED"


class TestTrouble:
    def test_no_worker_for_a_synchronous_extraction(self, fresh_simulator):
        official = Official(fresh_simulator(job_median_secs=1e6, job_sigma=0.0).url)
        error = official.refuse(
            504, official.extract, sdk.ExtractRequest(url="https://example.com/")
        )
        assert isinstance(error, exceptions.ServiceException) and error.data is None
        answer = sdk.ErrorResponse.from_json(error.body)
        assert (answer.code, answer.retryable) == ("WORKER_WAIT_TIMEOUT", True)

    @pytest.mark.parametrize("name", [*FLAT, *BARE])
    def test_injected_errors_have_the_documented_shapes(self, start_simulator, name):
        simulator = start_simulator(speed=1.0, faults={"api": {"errors": 1.0}})
        official = Official(simulator.url)
        method, arguments = getattr(official, name), {**FLAT, **BARE}[name]
        seen = {}
        for _ in range(60):
            with pytest.raises(ApiException) as caught:
                method(*arguments)
            error = caught.value
            assert error.status in (429, 500, 502, 503)
            seen.setdefault(error.status, []).append(error)
        assert seen.keys() == {429, 500, 502, 503}
        for errors in seen.values():
            for error in errors:
                if error.body:
                    answer = sdk.ErrorResponse.from_json(error.body)
                    assert answer.retryable is True and answer.to_dict() == json.loads(error.body)
                else:
                    assert name in BARE
        waits = {error.headers.get("retry-after") for error in seen[429]}
        assert None in waits and "2" in waits
        assert any(wait and wait.endswith(" GMT") for wait in waits)

    def test_an_answer_lost_on_its_way(self, fresh_simulator):
        simulator = fresh_simulator(faults={"api": {"lost_answers": 1.0}})
        official = Official(simulator.url)
        with pytest.raises(urllib3.exceptions.ProtocolError):
            official.extract(submission())
        [job] = official.ask(200, official.list_jobs).jobs
        [book] = simulator.books()
        assert (book["job_id"], book["answer_lost"]) == (str(job.job_id), True)

    def test_a_job_that_vanished(self, fresh_simulator):
        official = Official(fresh_simulator(faults={"jobs": {"vanished": 1.0}}).url)
        accepted = official.ask(202, official.extract, submission())
        check_flat(official.refuse(404, official.get_job, accepted.job_id), "JOB_NOT_FOUND", False)
        [job] = official.ask(200, official.list_jobs).jobs
        assert str(job.job_id) == accepted.job_id

    def test_a_job_that_may_not_be_read_yet(self, fresh_simulator):
        official = Official(fresh_simulator(speed=1.0, read_lag_secs=0.5).url)
        accepted = official.ask(202, official.extract, submission())
        official.refuse(404, official.get_job, accepted.job_id)

        def is_there():
            try:
                return official.get_job(accepted.job_id)
            except exceptions.NotFoundException:
                return None

        assert until(is_there, lambda job: job is not None).job_id == accepted.job_id
