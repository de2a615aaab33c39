"""Waiting for something, never longer than a bound."""

import time

# Seconds between two looks.
PAUSE = 0.1


def wait_until(what, look, within, pause=PAUSE):
    """Looks until there is something to see, and returns it; fails after so many seconds."""
    deadline = time.monotonic() + within
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"{what}: not within {within} s"
        time.sleep(pause)
