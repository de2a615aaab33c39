"""What is submitted: pages, batches and crawls, each URL its own."""

# Of a hundred jobs, how many are batches and crawls; the rest are pages.
BATCHES = 15
CRAWLS = 5
# One job in so many is submitted past Gleaner, which learns of it by its delivery alone.
FOREIGN_SHARE = 20
BATCH_URLS = (2, 12)
# The crawls' limit cuts the largest.
CRAWL_PAGES = (5, 60)


class Plan:
    """The submissions of a run."""

    def __init__(self, jobs):
        batches, crawls = jobs * BATCHES // 100, jobs * CRAWLS // 100
        own = jobs - batches - crawls - jobs // FOREIGN_SHARE
        self.pages = [f"https://e2e.example/page-{n}" for n in range(own)]
        self.batches = [
            [f"https://e2e.example/batch-{n}/{item}" for item in range(spread(n, BATCH_URLS))]
            for n in range(batches)
        ]
        # The judge knows strangers' jobs by their host.
        self.foreign = [
            f"https://elsewhere.example/{n}" for n in range(jobs // FOREIGN_SHARE)
        ]
        self.crawls = [
            f"https://site-{n}.e2e.example/?pages={spread(n, CRAWL_PAGES)}"
            for n in range(crawls)
        ]

    def __len__(self):
        return len(self.pages) + len(self.batches) + len(self.crawls) + len(self.foreign)


def spread(number, bounds):
    """One of the sizes between the bounds, every one in its turn."""
    low, high = bounds
    return low + number * 7 % (high - low + 1)
