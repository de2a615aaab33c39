"""One run: jobs of three kinds from submission to the judgement."""

import calls
from person import Person
from report import sheet
from simulated import EVENTS, KEY
from submission import Plan

# Seconds for a run of a hundred jobs, which takes a quarter of them on an idle machine.
SETTLED_WITHIN = 180


class Run:
    """What a run did and left behind."""

    def __init__(self, world, jobs, **variables):
        plan = Plan(jobs)
        self.within = SETTLED_WITHIN * max(1, jobs / 100)
        self.world = world
        self.person = world.person = Person(world, variables)
        self.subscribe()
        self.submit(plan)
        self.settle()
        world.tick()
        self.counts = calls.counted(self.world)
        self.rows = world.rows()
        self.jobs = world.ours(self.rows)
        self.owed = world.owed()
        self.judgement = world.judge()

    def subscribe(self):
        """Types the API key, and has a webhook registered for each kind; both ways in are used."""
        self.world.stack.put_secret(self.world.output("ApiKeySecretId"), KEY)
        for kind in EVENTS:
            url = self.world.stack.api_url() if kind == "batch" else self.world.stack.url()
            self.person.gleaner("webhooks", "create", "--event", kind, "--url", url)

    def submit(self, plan):
        self.submit_pages(plan)
        self.submit_parents(plan)

    def settle(self):
        """Waits until nobody owes anything."""
        self.world.wait_until_settled(self.within, self.meanwhile)

    def meanwhile(self):
        """What is done again and again while the jobs are on their way."""

    def submit_pages(self, plan):
        self.person.submit(plan.pages, "--run", "pages")

    def submit_parents(self, plan):
        for number, urls in enumerate(plan.batches):
            self.person.submit(urls, "--batch", "--run", f"batch-{number}")
        self.person.submit(plan.crawls, "--crawl", "--depth", "3", "--run", "crawls")
        for url in plan.foreign:
            self.world.simulator.submit(url)

    def finished(self):
        """How many jobs have a result: pages that were fetched, and whatever else has ended."""
        ended = ("completed", "failed", "cancelled")
        return sum(
            job["status"] == "completed" if job["kind"] == "extract" else job["status"] in ended
            for job in self.jobs
        )

    def is_balanced(self):
        wrong = ("lost", "stored_twice", "paid_twice", "wrong")
        return not self.owed and not any(self.judgement[name] for name in wrong)

    def sheet(self, title, *blocks):
        verdict = "the books balance" if self.is_balanced() else "THE BOOKS DO NOT BALANCE"
        states = {}
        for state in self.rows.values():
            states[state] = states.get(state, 0) + 1
        books = [
            ("platform's jobs", str(len(self.jobs)), ""),
            *((f"{state} in the ledger", str(count), "") for state, count in states.items()),
            ("stored", str(self.judgement["stored"]), "in the bucket"),
            ("answers lost", str(self.judgement["answers_lost"]), "of paid calls"),
            ("owed", str(len(self.owed)), ""),
            ("lost", str(self.judgement["lost"]), ""),
            ("stored twice", str(self.judgement["stored_twice"]), ""),
            ("paid twice", str(self.judgement["paid_twice"]), ""),
            ("wrong content", str(self.judgement["wrong"]), ""),
        ]
        return sheet(f"{title}: {verdict}", [books, *blocks])
