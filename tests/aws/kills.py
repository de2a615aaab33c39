"""Functions that are ended by SIGKILL at a call of theirs, before its effect or after it.

The calls are chosen by a seed. The proxy plays it: only there it is known that a call has had its
effect and that nobody has seen the answer.
"""

import contextlib
import os
import pathlib
import random
import signal

import processes

SEED = 7


class Kills:
    """Whom the proxy ends, and how often it has."""

    def __init__(self):
        self.plans = {}

    def plan(self, plans):
        """Puts these plans in force and no others."""
        self.plans = {plan["access_key"]: Plan(**plan) for plan in plans}

    def moment(self, access_key):
        """Whether a call of this caller is one to end it at: `before` or `after` it, or neither."""
        plan = self.plans.get(access_key)
        return plan.moment() if plan else None

    def strike(self, access_key):
        self.plans[access_key].strike()

    def struck(self):
        return {plan.function: plan.struck for plan in self.plans.values()}


class Plan:
    """How one function is ended: after `low` to `high` calls, again and again, so many times."""

    def __init__(self, access_key, function, leader, low, high, times):
        del access_key
        self.function = function
        self.leader = leader
        self.bounds = low, high
        self.times = times
        self.struck = 0
        self.chance = random.Random(f"{SEED}/{low}/{high}")
        self.left = self.chance.randint(low, high)

    def moment(self):
        self.left -= 1
        if self.left > 0 or self.struck >= self.times:
            return None
        self.left = self.chance.randint(*self.bounds)
        return self.chance.choice(("before", "after"))

    def strike(self):
        """Ends all processes of the function that run now."""
        named = f"AWS_LAMBDA_FUNCTION_NAME={self.function}".encode()
        for pid in processes.session(self.leader):
            # Gone meanwhile: then it is over with it.
            with contextlib.suppress(OSError):
                if named in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    self.struck += 1
