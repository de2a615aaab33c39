"""Between the functions and the services: counts calls, makes some fail, and ends callers at some.

A program of its own, `python proxy.py PORT UPSTREAM`, and the calls to a running one. The rules are
microburst's, with one difference: an answer is lost as a whole by `{"response": {"abort_bytes": 0}}`,
once the service has done what was asked; microburst itself cannot lose an answer without a body.
"""

import collections
import json
import sys

import urllib3
from aiohttp import web
from microburst.core.pipeline import Microburst
from microburst.detection import detect
from microburst.effects import apply_decision
from yarl import URL

import processes
from kills import Kills
from waiting import wait_until

# Largest request that is passed on, in bytes.
REQUEST_MAX = 64 * 1024 * 1024
# Seconds. Python takes one or two.
STARTED_WITHIN = 60
CALL_WITHIN = 30


class Passage(Microburst):
    """Passes calls on."""

    def __init__(self, upstream):
        super().__init__(upstream, resign=False)
        self.counts = collections.Counter()
        self.denied = collections.Counter()
        self.kills = Kills()

    async def handle_proxy(self, request):
        body = await request.read()
        url = request.rel_url
        call = detect(request.headers, request.method, url.raw_path, url.query, body)
        self.counts[call.access_key, call.service, call.operation, subject(call)] += 1
        moment = self.kills.moment(call.access_key)
        if moment is not None:
            if moment == "after":
                await self.pass_on(request, call)
            self.kills.strike(call.access_key)
            return hang_up(request)
        decision = self.engine.decide(call)
        if decision is None:
            return await self.pass_on(request, call)
        if decision.response_fault is None:
            return await apply_decision(request, call, decision) or await self.pass_on(request, call)
        assert decision.response_fault.abort_bytes == 0, decision.rule
        await self.pass_on(request, call)
        return hang_up(request)

    async def pass_on(self, request, call):
        """Asks the service. The signature covers the host that the caller named, so it stays."""
        async with self.upstream.session.request(
            request.method,
            # As it was written: the signature covers each percent sign as well.
            URL(self.upstream.base_url + request.rel_url.raw_path_qs, encoded=True),
            headers=without_hops(request.headers),
            data=call.body,
            allow_redirects=False,
        ) as answer:
            content = await answer.read()
            if answer.status in (400, 403) and b"AccessDenied" in content:
                self.denied[call.access_key, call.service, call.operation] += 1
            headers = without_hops(answer.headers)
            return web.Response(status=answer.status, headers=headers, body=content)

    async def handle_kills(self, request):
        if request.method == "POST":
            self.kills.plan(await request.json())
        return web.json_response(self.kills.struck())

    async def handle_counts(self, _):
        return web.json_response(
            {
                "calls": [[*call, count] for call, count in self.counts.items()],
                "denied": [[*call, count] for call, count in self.denied.items()],
            }
        )


def hang_up(request):
    """Ends the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def without_hops(headers):
    """The headers that belong to the message, not to one connection."""
    hops = ("connection", "content-length", "keep-alive", "transfer-encoding")
    return [(name, value) for name, value in headers.items() if name.lower() not in hops]


def subject(call):
    """What a call is about, where calls of one name differ in what they are for."""
    if call.service == "secretsmanager":
        return json.loads(call.body).get("SecretId")
    if call.operation == "PutObject":
        return call.headers.get("if-none-match")
    if call.service != "dynamodb":
        return None
    document = json.loads(call.body)
    if "IndexName" in document:
        return document["IndexName"]
    key = document.get("Key") or document.get("Item") or {}
    # The kind of row: job, intent, control.
    return key.get("pk", {}).get("S", "").partition("#")[0] or None


def serve(port, upstream):
    passage = Passage(upstream)
    app = web.Application(client_max_size=REQUEST_MAX)
    app.on_startup.append(passage.start)
    app.on_cleanup.append(passage.stop)
    app.router.add_get("/_counts", passage.handle_counts)
    app.router.add_route("*", "/_kills", passage.handle_kills)
    app.router.add_route("*", "/_microburst/{tail:.*}", passage.handle_control)
    app.router.add_route("*", "/{tail:.*}", passage.handle_proxy)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


class Proxy:
    """A running proxy."""

    def __init__(self, folder, port, upstream):
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "proxy.log"
        self.http = urllib3.PoolManager(retries=False, timeout=CALL_WITHIN)
        # Without it, it would ask for credentials of its own.
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, __file__, str(port), upstream]
        self.process = processes.start(command, self.log, environment)
        try:
            wait_until("the proxy", self.is_ready, STARTED_WITHIN)
        except BaseException:
            self.stop()
            raise

    def warm_up(self, client):
        """Makes a first call of each service, which takes seconds: it reads what the service is."""
        client("dynamodb", self.url).list_tables()
        client("s3", self.url).list_buckets()
        client("secretsmanager", self.url).list_secrets()
        client("sqs", self.url).list_queues()

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        try:
            return self.ask("GET", "/_microburst/health")["status"] == "ok"
        except urllib3.exceptions.HTTPError:
            return False

    def counts(self):
        """Calls so far: access key, service, operation, subject, count."""
        return self.ask("GET", "/_counts")["calls"]

    def denied(self):
        """Calls that somebody had no right to: access key, service, operation, count."""
        return self.ask("GET", "/_counts")["denied"]

    def set_rules(self, rules):
        """Puts these rules in force and no others; returns their ids in the same order."""
        return [rule["id"] for rule in self.ask("POST", "/_microburst/rules", rules)]

    def fired(self):
        """How often each rule in force has made a call fail, by its id."""
        return {rule["id"]: rule["fired_count"] for rule in self.ask("GET", "/_microburst/rules")}

    def kill(self, plans):
        """Puts these plans to end functions in force and no others."""
        self.ask("POST", "/_kills", plans)

    def killed(self):
        """How many processes of each function the plans in force have ended."""
        return self.ask("GET", "/_kills")

    def ask(self, method, path, body=None):
        answer = self.http.request(method, self.url + path, json=body)
        assert answer.status == 200, answer.data
        return answer.json()

    def stop(self):
        self.http.clear()
        processes.stop(self.process)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
