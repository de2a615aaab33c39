"""Real documents arrive in the results byte for byte."""

import gzip
import json

import pytest

from conftest import KEY
from corpus import FILES, TRICKY

# URLs of one batch, at most (the platform's limit).
BATCH_URLS_MAX = 1_000


def stored_texts(results):
    """Walks all stored results: URL as submitted, HTML, Markdown."""
    for path in results.glob("kind=extract/dt=*/*.json.gz"):
        job = json.loads(gzip.decompress(path.read_bytes()))["job"]
        yield job["metadata"]["url"], job["data"]["html"], job["data"]["markdown"]
    for path in results.glob("kind=*/dt=*/*/_manifest.json"):
        for part in json.loads(path.read_bytes())["parts"]:
            lines = gzip.decompress((results / part["key"]).read_bytes())
            for line in lines.split(b"\n")[:-1]:
                item = json.loads(line)["item"]
                yield item["url"], item["data"]["html"], item["data"]["markdown"]


@pytest.fixture(scope="module")
def served(demo, start_simulator):
    """Asks a simulator over the same documents which file it serves for each URL."""
    simulator = start_simulator(corpus=str(demo.corpus))
    urls = sorted({url for url, _, _ in stored_texts(demo.results)})
    for begin in range(0, len(urls), BATCH_URLS_MAX):
        body = {"urls": urls[begin : begin + BATCH_URLS_MAX], "formats": ["html", "markdown"]}
        assert simulator.request("POST", "/v1/batch", body).status == 202
    parts = [part for job in simulator.books() for part in job["parts"]]
    files = {part["url"]: (part["html"]["file"], part["markdown"]["file"]) for part in parts}
    assert files.keys() == set(urls)
    return files


def test_every_stored_text_is_its_file(demo, served):
    sources = {path.name: path.read_bytes() for path in demo.corpus.iterdir()}
    compared = 0
    for url, html, markdown in stored_texts(demo.results):
        html_file, markdown_file = served[url]
        assert html.encode() == sources[html_file], (url, html_file)
        assert markdown.encode() == sources[markdown_file], (url, markdown_file)
        compared += 2
    assert compared > 10 * FILES


def test_every_tricky_document_was_served(served):
    files = {file for pair in served.values() for file in pair}
    expected = {f"tricky-{name}.{suffix}" for name in TRICKY for suffix in ("html", "md")}
    assert expected <= files
    assert len(files) == 2 * FILES


def test_the_simulator_serves_the_same_bytes_over_http(demo, fresh_simulator):
    simulator = fresh_simulator(corpus=str(demo.corpus))
    for number in range(4 * FILES):
        body = {
            "url": f"https://documents.example/{number}",
            "formats": ["html", "markdown"],
            "processing_mode": "async",
        }
        assert simulator.request("POST", "/v1/extract", body, KEY).status == 202
    for job in simulator.books():
        [part] = job["parts"]
        answer = simulator.request("GET", f"/v1/extract/{job['job_id']}")
        data = json.loads(answer.data)["data"]
        for text in ("html", "markdown"):
            assert data[text].encode() == (demo.corpus / part[text]["file"]).read_bytes()
