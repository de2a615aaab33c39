"""Lambda's batching window, which the emulator does not have: it hands on each task as it comes."""

import threading

# Seconds that tasks are gathered, the template's default.
WINDOW = 2.0
# Seconds. Handing on what was gathered takes a tenth of one.
TAKEN_WITHIN = 30
PAUSE = 0.05


class Window:
    """Gathers tasks for so long, then lets the worker take them in full batches; and so on."""

    def __init__(self, world):
        self.functions = world.emulator.client("lambda")
        self.queue = world.emulator.client("sqs"), world.output("QueueUrl")
        [mapping] = self.functions.list_event_source_mappings(
            FunctionName=world.output("WorkerFunction")
        )["EventSourceMappings"]
        self.mapping = mapping["UUID"]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.gather)

    def __enter__(self):
        self.switch(on=False)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.switch(on=True)

    def gather(self):
        while not self.over.wait(WINDOW):
            if self.waiting():
                self.switch(on=True)
                pauses = 0
                while self.waiting() and pauses < TAKEN_WITHIN / PAUSE:
                    pauses += 1
                    self.over.wait(PAUSE)
                self.switch(on=False)

    def waiting(self):
        client, url = self.queue
        name = "ApproximateNumberOfMessages"
        answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def switch(self, *, on):
        self.functions.update_event_source_mapping(UUID=self.mapping, Enabled=on)
