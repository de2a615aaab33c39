"""What is submitted: pages, batches and crawls, each URL its own."""

# Of a hundred jobs, how many are batches and crawls; the rest are pages.
BATCHES = 15
CRAWLS = 5
BATCH_URLS = (2, 12)
CRAWL_PAGES = (5, 60)


class Plan:
    """The submissions of a run."""

    def __init__(self, jobs):
        batches, crawls = jobs * BATCHES // 100, jobs * CRAWLS // 100
        self.pages = [f"https://e2e.example/page-{n}" for n in range(jobs - batches - crawls)]
        self.batches = [
            [f"https://e2e.example/batch-{n}/{item}" for item in range(spread(n, BATCH_URLS))]
            for n in range(batches)
        ]
        self.crawls = [
            (f"https://site-{n}.e2e.example/?pages={spread(n, CRAWL_PAGES)}", CRAWL_PAGES[1])
            for n in range(crawls)
        ]

    def __len__(self):
        return len(self.pages) + len(self.batches) + len(self.crawls)


def spread(number, bounds):
    """One of the sizes between the bounds, every one in its turn."""
    low, high = bounds
    return low + number * 7 % (high - low + 1)
