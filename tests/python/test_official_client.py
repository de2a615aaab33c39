"""The platform's official client drives the simulator, and its models accept every answer."""

from datetime import datetime, timedelta, timezone

import geonode_scraper_sdk as sdk
import pytest
from geonode_scraper_sdk import JobStatus, OutputFormat

from official import Official, submission, until

BOTH = [OutputFormat.HTML, OutputFormat.MARKDOWN]


@pytest.fixture
def simulator(fresh_simulator):
    return fresh_simulator()


@pytest.fixture
def official(simulator):
    return Official(simulator.url)


@pytest.fixture
def slow(start_simulator):
    """A client of a platform whose jobs take four seconds each, from 0.6 s on in flight."""
    return Official(start_simulator(speed=1.0, job_median_secs=4.0, job_sigma=0.0).url)


@pytest.fixture
def idle(start_simulator):
    """A client of a platform whose jobs take a day."""
    return Official(start_simulator(speed=1.0, job_median_secs=86_400.0, job_sigma=0.0).url)


def is_now(moment):
    return abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)


class TestExtract:
    def test_an_asynchronous_job_is_accepted_and_read(self, official):
        options = {
            "formats": BOTH,
            "render_js": True,
            "headers": {"Accept-Language": "de"},
            "proxy": sdk.ProxySettings(country="DE", type=sdk.ProxyType.MIX),
            "wait_config": sdk.WaitConfig(
                wait_until=sdk.WaitUntil.LOAD, wait_for="#main", wait_timeout=5_000
            ),
        }
        accepted = official.ask(202, official.extract, submission(**options))
        assert isinstance(accepted, sdk.ExtractAsyncResponse)
        assert accepted.status == JobStatus.QUEUED
        assert accepted.status_url == f"/v1/extract/{accepted.job_id}"
        assert accepted.estimated_tokens == 1

        job = official.ask(200, official.get_job, accepted.job_id)
        assert isinstance(job, sdk.JobStatusResponse)
        assert (job.job_id, job.status) == (accepted.job_id, JobStatus.COMPLETED)
        assert is_now(job.created_at) and job.completed_at >= job.created_at
        assert job.data.html.startswith("<!doctype html>") and job.data.markdown.startswith("# ")
        assert (job.error, job.tokens_charged) == (None, 1)
        assert job.metadata.url == "https://example.com/page"
        assert (job.metadata.http_status, job.metadata.formats) == (200, BOTH)
        assert job.metadata.processing_mode == sdk.ProcessingMode.ASYNC
        assert job.metadata.render_js is True
        assert job.metadata.headers == options["headers"]
        assert job.metadata.proxy == options["proxy"]
        assert job.metadata.wait_config == options["wait_config"]

    def test_only_requested_formats_are_filled(self, official):
        accepted = official.ask(202, official.extract, submission())
        data = official.ask(200, official.get_job, accepted.job_id).data
        assert data.html and data.markdown is None
        accepted = official.ask(202, official.extract, submission(formats=[OutputFormat.MARKDOWN]))
        data = official.ask(200, official.get_job, accepted.job_id).data
        assert data.markdown and data.html is None

    def test_a_synchronous_extraction_answers_with_the_page(self, official):
        request = sdk.ExtractRequest(url="https://example.com/sync", formats=BOTH, timeout=60_000)
        page = official.ask(200, official.extract, request)
        assert isinstance(page, sdk.ExtractSyncResponse)
        assert page.data.html and page.data.markdown
        assert page.metadata.processing_mode == sdk.ProcessingMode.SYNC
        assert (page.metadata.http_status, page.tokens_charged) == (200, 1)
        assert official.ask(200, official.list_jobs).jobs == []

    def test_an_unfinished_job_has_nothing_yet(self, idle):
        accepted = idle.ask(202, idle.extract, submission())
        job = idle.ask(200, idle.get_job, accepted.job_id)
        assert job.status in (JobStatus.QUEUED, JobStatus.PROCESSING)
        assert [job.completed_at, job.data, job.error, job.metadata, job.tokens_charged] == [
            None
        ] * 5

    def test_a_running_job_says_so(self, slow):
        accepted = slow.ask(202, slow.extract, submission())
        ask = lambda: slow.ask(200, slow.get_job, accepted.job_id)
        assert until(ask, lambda job: job.status != JobStatus.QUEUED).status == JobStatus.PROCESSING
        assert (
            until(ask, lambda job: job.status != JobStatus.PROCESSING).status == JobStatus.COMPLETED
        )

    def test_jobs_are_listed_filtered_and_paged(self, official):
        urls = [f"https://example.com/{number}" for number in range(7)]
        ids = [official.ask(202, official.extract, submission(url)).job_id for url in urls]
        listed = official.ask(200, official.list_jobs)
        assert isinstance(listed, sdk.JobCollectionResponse)
        assert (listed.page, listed.page_size, listed.page_count) == (1, 100, 1)
        assert listed.is_capped is False
        assert [str(job.job_id) for job in listed.jobs] == ids[::-1]
        assert [job.url for job in listed.jobs] == urls[::-1]
        for job in listed.jobs:
            assert (job.status, job.output) == (JobStatus.COMPLETED, [OutputFormat.HTML])
            assert is_now(job.created_at) and job.execution_time == 0

        pages = [official.ask(200, official.list_jobs, page=n, page_size=3) for n in range(1, 5)]
        assert [len(page.jobs) for page in pages] == [3, 3, 1, 0]
        assert {page.page_count for page in pages} == {3}
        assert [str(job.job_id) for page in pages for job in page.jobs] == ids[::-1]

        def count(**filters):
            return len(official.ask(200, official.list_jobs, **filters).jobs)

        assert count(job_id=ids[3]) == count(url="com/3") == 1
        assert [count(status=status) for status in JobStatus] == [0, 0, 7, 0, 0]
        assert [count(output=output) for output in BOTH] == [7, 0]
        hour = timedelta(hours=1)
        now = datetime.now(timezone.utc)
        assert count(start_date=now - hour, end_date=now + hour) == 7
        assert count(start_date=now + hour) == count(end_date=now - hour) == 0

    def test_a_failed_job_tells_why(self, fresh_simulator):
        simulator = fresh_simulator(faults={"jobs": {"fail_retryable": 0.5, "fail_final": 0.5}})
        official = Official(simulator.url)
        errors = []
        for number in range(40):
            accepted = official.ask(
                202, official.extract, submission(f"https://example.com/{number}")
            )
            job = official.ask(200, official.get_job, accepted.job_id)
            assert (job.status, job.data, job.tokens_charged) == (JobStatus.FAILED, None, 0)
            assert isinstance(job.error.code, sdk.ExtractionErrorCode) and job.error.message
            errors.append(job)
        assert {job.error.retryable for job in errors} == {True, False}
        # A failed job may have no metadata, so that it alone does not say what was submitted.
        assert {job.metadata is None for job in errors} == {True, False}
        listed = official.ask(200, official.list_jobs, status=JobStatus.FAILED)
        assert len(listed.jobs) == 40

    def test_a_job_may_be_cancelled_by_the_platform(self, fresh_simulator):
        official = Official(fresh_simulator(faults={"jobs": {"cancelled": 1.0}}).url)
        accepted = official.ask(202, official.extract, submission())
        job = official.ask(200, official.get_job, accepted.job_id)
        assert (job.status, job.data) == (JobStatus.CANCELLED, None)
        assert job.error.code == sdk.ExtractionErrorCode.CANCELLED


class TestBatch:
    def test_a_batch_is_accepted_read_in_pages_and_listed(self, official):
        urls = [f"https://example.com/{number}" for number in range(25)]
        urls[4] = "no address"
        request = sdk.BatchRequest(urls=urls, formats=BOTH, headers={"A": "b"})
        accepted = official.ask(202, official.create_batch, request)
        assert isinstance(accepted, sdk.BatchAccepted)
        assert (accepted.accepted_urls, accepted.invalid_urls) == (24, ["no address"])
        assert accepted.status == JobStatus.QUEUED
        assert accepted.status_url == f"/v1/batch/{accepted.job_id}"

        # Ten items a page unless asked otherwise, fifty at most.
        first = official.ask(200, official.get_batch, accepted.job_id)
        assert isinstance(first, sdk.BatchStatusResponse) and len(first.results) == 10
        assert (first.job_id, first.status) == (accepted.job_id, JobStatus.COMPLETED)
        assert first.invalid_urls == ["no address"] and is_now(first.created_at)
        counted = (first.total_urls, first.completed_urls, first.failed_urls)
        assert counted == (24, 24, 0)
        assert (first.cancelled_urls, first.pending_urls) == (0, 0)
        summary = first.token_summary
        assert (summary.tokens_charged_total, summary.tokens_reserved) == (24, 0)
        assert first.batch_config.formats == BOTH and first.batch_config.headers == {"A": "b"}
        assert first.batch_config.proxy.type == sdk.ProxyType.RESIDENTIAL

        get = lambda page: official.ask(
            200, official.get_batch, accepted.job_id, page=page, page_size=9
        )
        pages = [get(page).results for page in range(1, 5)]
        assert [len(page) for page in pages] == [9, 9, 6, 0]
        items = [item for page in pages for item in page]
        assert [urls[item.input_index] for item in items] == [item.url for item in items]
        assert sorted(item.input_index for item in items) == [n for n in range(25) if n != 4]
        for item in items:
            assert item.status == "completed" and item.data.html and item.data.markdown
            assert (item.error_code, item.error_message) == (None, None)
            assert (item.metadata.http_status, item.metadata.tokens_charged) == (200, 1)
        assert (
            len(official.ask(200, official.get_batch, accepted.job_id, page_size=50).results) == 24
        )

        listed = official.ask(200, official.list_batches)
        assert isinstance(listed, sdk.BatchJobsResponse)
        assert (listed.page, listed.page_size, listed.page_count) == (1, 100, 1)
        [job] = listed.jobs
        assert (job.job_id, job.status) == (accepted.job_id, JobStatus.COMPLETED)
        assert (job.accepted_urls, job.completed_urls, job.failed_urls) == (24, 24, 0)
        assert job.config == first.batch_config and job.completed_at >= job.created_at
        assert official.ask(200, official.list_batches, status=JobStatus.QUEUED).jobs == []

    def test_a_completed_batch_may_hold_failures(self, fresh_simulator):
        official = Official(fresh_simulator(faults={"jobs": {"fail_final": 0.5}}).url)
        urls = [f"https://example.com/{number}" for number in range(40)]
        accepted = official.ask(202, official.create_batch, sdk.BatchRequest(urls=urls))
        batch = official.ask(200, official.get_batch, accepted.job_id, page_size=50)
        assert batch.status == JobStatus.COMPLETED
        failed = [item for item in batch.results if item.status == "failed"]
        assert 0 < len(failed) == batch.failed_urls == 40 - batch.completed_urls
        assert batch.token_summary.tokens_charged_total == batch.completed_urls
        for item in failed:
            assert item.data is None and item.error_message
            assert item.error_code in [code.value for code in sdk.ExtractionErrorCode]

    def test_a_cancelled_batch_drains(self, slow):
        urls = [f"https://example.com/{number}" for number in range(3)]
        accepted = slow.ask(202, slow.create_batch, sdk.BatchRequest(urls=urls))
        ask = lambda: slow.ask(200, slow.get_batch, accepted.job_id)
        until(ask, lambda batch: batch.status == JobStatus.PROCESSING)
        cancelled = slow.ask(202, slow.cancel_batch, accepted.job_id)
        assert isinstance(cancelled, sdk.BatchCancelled)
        assert (cancelled.job_id, cancelled.status) == (accepted.job_id, JobStatus.CANCELLED)
        assert (cancelled.in_flight_urls, cancelled.status_url) == (3, accepted.status_url)
        draining = ask()
        assert (draining.status, draining.pending_urls) == (JobStatus.CANCELLED, 3)
        assert draining.token_summary.tokens_reserved == 3
        drained = until(ask, lambda batch: batch.token_summary.tokens_reserved == 0)
        assert (drained.status, drained.completed_urls) == (JobStatus.CANCELLED, 3)
        slow.refuse(409, slow.cancel_batch, accepted.job_id)

    def test_a_batch_cancelled_at_once_has_done_nothing(self, idle):
        accepted = idle.ask(202, idle.create_batch, sdk.BatchRequest(urls=["https://example.com/"]))
        assert idle.ask(202, idle.cancel_batch, accepted.job_id).in_flight_urls == 0
        batch = idle.ask(200, idle.get_batch, accepted.job_id)
        assert (batch.status, batch.cancelled_urls) == (JobStatus.CANCELLED, 1)


class TestCrawl:
    def test_a_crawl_is_accepted_read_in_pages_and_listed(self, official):
        seed = "https://example.com/?pages=30"
        request = sdk.CrawlRequest(url=seed, depth=3, limit=23, formats=BOTH)
        accepted = official.ask(202, official.create_crawl, request)
        assert isinstance(accepted, sdk.CrawlAccepted)
        assert (accepted.url, accepted.estimated_pages) == (seed, 23)
        assert accepted.status == JobStatus.QUEUED
        assert accepted.status_url == f"/v1/crawl/{accepted.job_id}"

        first = official.ask(200, official.get_crawl, accepted.job_id)
        assert isinstance(first, sdk.CrawlStatusResponse) and len(first.results) == 10
        assert (first.url, first.status) == (seed, JobStatus.COMPLETED)
        counted = (first.total_pages, first.completed_pages, first.failed_pages)
        assert counted == (23, 23, 0) and first.cancelled_pages == 0
        assert first.token_summary.tokens_charged_total == 23
        assert first.crawl_config.formats == BOTH and first.crawl_config.same_domain_only is True

        get = lambda page: official.ask(
            200, official.get_crawl, accepted.job_id, page=page, page_size=8
        )
        pages = [get(page).results for page in range(1, 5)]
        assert [len(page) for page in pages] == [8, 8, 7, 0]
        items = [item for page in pages for item in page]
        by_url = {item.url: item for item in items}
        assert len(by_url) == 23
        assert (by_url[seed].depth, by_url[seed].parent_url) == (1, None)
        for item in items:
            assert item.status == "completed" and item.data.html and item.data.markdown
            assert item.metadata.http_status == 200 and 1 <= item.depth <= 3
            if item.url != seed:
                parent = by_url[item.parent_url]
                assert item.depth == parent.depth + 1 and item.url in parent.links

        listed = official.ask(200, official.list_crawls, url="example.com")
        assert isinstance(listed, sdk.CrawlJobsResponse) and listed.page_count == 1
        [job] = listed.jobs
        assert (job.job_id, job.url, job.status) == (accepted.job_id, seed, JobStatus.COMPLETED)
        assert (job.total_pages, job.completed_pages, job.failed_pages) == (23, 23, 0)
        assert job.config == first.crawl_config
        assert official.ask(200, official.list_crawls, url="elsewhere").jobs == []

    def test_a_cancelled_crawl_drains(self, slow):
        request = sdk.CrawlRequest(url="https://example.com/?pages=4", depth=2)
        accepted = slow.ask(202, slow.create_crawl, request)
        ask = lambda: slow.ask(200, slow.get_crawl, accepted.job_id)
        until(ask, lambda crawl: crawl.status == JobStatus.PROCESSING)
        cancelled = slow.ask(202, slow.cancel_crawl, accepted.job_id)
        assert isinstance(cancelled, sdk.CrawlCancelled)
        assert (cancelled.job_id, cancelled.status) == (accepted.job_id, JobStatus.CANCELLED)
        assert cancelled.in_flight_pages == 4
        assert ask().token_summary.tokens_reserved > 0
        drained = until(ask, lambda crawl: crawl.token_summary.tokens_reserved == 0)
        assert (drained.status, drained.completed_pages) == (JobStatus.CANCELLED, 4)
        slow.refuse(409, slow.cancel_crawl, accepted.job_id)


class TestAccount:
    def test_statistics_count_settled_work(self, official):
        for number in range(3):
            official.ask(202, official.extract, submission(f"https://example.com/{number}"))
        official.ask(
            202, official.create_batch, sdk.BatchRequest(urls=["https://example.com/"] * 2)
        )
        statistics = official.ask(200, official.statistics)
        assert isinstance(statistics, sdk.StatisticsResponse)
        assert (statistics.extraction_count, statistics.period_tokens_used) == (5, 5)
        assert (statistics.success_rate, statistics.previous_period_extraction_count) == (1.0, 0)
        assert sum(day.success_request_count for day in statistics.requests) == 5
        assert sum(day.failed_request_count for day in statistics.requests) == 0
        assert sum(day.tokens_used for day in statistics.tokens_used) == 5
        week = timedelta(days=7)
        now = datetime.now(timezone.utc)
        earlier = official.ask(
            200, official.statistics, start_date=now - 2 * week, end_date=now - week
        )
        assert (earlier.extraction_count, earlier.requests, earlier.tokens_used) == (0, [], [])

    def test_concurrency_counts_unfinished_jobs(self, fresh_simulator):
        idle = Official(fresh_simulator(job_median_secs=1e6, work_concurrency_limit=7).url)
        usage = idle.ask(200, idle.concurrency)
        assert isinstance(usage, sdk.ConcurrencyUsageResponse)
        assert (usage.work_concurrency_in_use, usage.work_concurrency_limit) == (0, 7)
        idle.ask(202, idle.extract, submission())
        assert idle.ask(200, idle.concurrency).work_concurrency_in_use == 1

    def test_health_needs_no_key(self, simulator):
        stranger = Official(simulator.url, key=None)
        health = stranger.ask(200, stranger.health)
        assert isinstance(health, sdk.HealthResponse)
        assert health.status == sdk.HealthStatus.OK
        assert health.service and health.version and is_now(health.timestamp)
