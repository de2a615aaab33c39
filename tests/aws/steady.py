"""Jobs that somebody else submits all the while, so that deliveries do not cease."""

import threading

# Seconds between two of them.
EVERY = 0.2


class Steady:
    """Submits a page again and again, until it is left."""

    def __init__(self, world):
        self.simulator = world.simulator
        self.jobs = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.submit)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def submit(self):
        while not self.over.wait(EVERY):
            self.jobs.append(self.simulator.submit(f"https://e2e.example/{len(self.jobs)}"))
