"""One run: jobs of three kinds from submission to the judgement."""

import calls
from report import sheet
from submission import Plan

# Seconds for a run of a hundred jobs, which takes a quarter of them on an idle machine.
SETTLED_WITHIN = 180


class Run:
    """What a run did and left behind."""

    def __init__(self, world, jobs):
        plan = Plan(jobs)
        self.within = SETTLED_WITHIN * max(1, jobs / 100)
        self.world = world
        world.subscribe()
        self.submit(plan)
        self.settle()
        world.tick()
        self.counts = calls.counted(world)
        self.jobs = world.jobs()
        self.rows = world.rows()
        self.owed = world.owed()
        self.judgement = world.judge()

    def submit(self, plan):
        self.submit_pages(plan)
        self.submit_parents(plan)

    def settle(self):
        self.world.wait_until_settled(self.within, self.meanwhile)

    def meanwhile(self):
        """What is done again and again while the jobs are on their way."""

    def submit_pages(self, plan):
        for url in plan.pages:
            self.world.simulator.submit(url)

    def submit_parents(self, plan):
        ask = self.world.simulator.ask
        for urls in plan.batches:
            ask("POST", "/v1/batch", {"urls": urls, "formats": ["html", "markdown"]}, 202)
        for url, limit in plan.crawls:
            body = {"url": url, "limit": limit, "depth": 3, "formats": ["html", "markdown"]}
            ask("POST", "/v1/crawl", body, 202)

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
            ("owed", str(len(self.owed)), ""),
            ("lost", str(self.judgement["lost"]), ""),
            ("stored twice", str(self.judgement["stored_twice"]), ""),
            ("paid twice", str(self.judgement["paid_twice"]), ""),
            ("wrong content", str(self.judgement["wrong"]), ""),
        ]
        return sheet(f"{title}: {verdict}", [books, *blocks])
