"""What goes wrong between the functions and the services, each with a name and a bound."""

import calls

# A rule of these ends an answer after its effect (proxy.py), and lets some calls pass in between.
LOST = {"response": {"abort_bytes": 0}}


def error(code, status):
    return {"error": {"code": code, "status": status}}


def some(fail, others, times):
    """Lets so many attempts fail in a row, then passes others; no more than `times` in all."""
    return {"sequence": {"fail": fail, "pass": others}, "times": times}


def down(code, status):
    """Fails for longer than the functions try: ten calls at once, three attempts each."""
    return {**error(code, status), **some(30, 60, 30)}


TABLE = {"service": "dynamodb"}
QUEUE = {"service": "sqs", "operation": "SendMessage"}
BUCKET = {"service": "s3", "operation": "PutObject"}
WRITE = {**TABLE, "operation": "PutItem"}

OF_THE_TABLE = {
    "row written, answer lost": {**WRITE, **LOST, **some(1, 5, 12)},
    "table throttled": {
        **TABLE,
        **error("ProvisionedThroughputExceededException", 400),
        **some(1, 6, 12),
    },
    "table answers 500": {**TABLE, **error("InternalServerError", 500), **some(1, 7, 12)},
    "table down": {**TABLE, **down("InternalServerError", 500)},
}
FAULTS = {
    "receiver": {
        **OF_THE_TABLE,
        "task sent, answer lost": {**QUEUE, **LOST, **some(1, 4, 10)},
        "queue throttled": {**QUEUE, **error("RequestThrottled", 400), **some(1, 5, 10)},
        "queue answers 500": {**QUEUE, **error("InternalFailure", 500), **some(1, 6, 10)},
        "queue down": {**QUEUE, **down("ServiceUnavailable", 503)},
    },
    "worker": {
        **OF_THE_TABLE,
        "task sent again, answer lost": {**QUEUE, **LOST, **some(1, 2, 4)},
        "queue throttled": {**QUEUE, **error("RequestThrottled", 400), **some(1, 2, 4)},
        "object written, answer lost": {**BUCKET, **LOST, **some(1, 4, 10)},
        "bucket throttled": {**BUCKET, **error("SlowDown", 503), **some(1, 5, 10)},
        "bucket answers 500": {**BUCKET, **error("InternalError", 500), **some(1, 6, 10)},
        "bucket down": {**BUCKET, **down("InternalError", 500)},
    },
    "cli": {
        "row written, answer lost": {**WRITE, **LOST, **some(1, 9, 12)},
        "table throttled": {**TABLE, **error("ThrottlingException", 400), **some(1, 12, 12)},
    },
    "scheduler": {
        "index throttled": {
            **TABLE,
            "operation": "Query",
            **error("ThrottlingException", 400),
            **some(1, 6, 6),
        },
        "task sent again, answer lost": {**QUEUE, **LOST, **some(1, 2, 2)},
    },
}
OUTAGE = {
    function: {
        "secrets down": {"service": "secretsmanager", **error("InternalServiceError", 500)}
    }
    for function in ("receiver", "worker")
}


class Weather:
    """The faults in force, and how often each has struck."""

    def __init__(self, world):
        self.proxy = world.proxy
        self.keys = {name: key for key, name in calls.callers(world).items()}
        self.struck = {}
        self.ids = {}

    def change(self, faults):
        """Puts these faults in force and no others."""
        self.count()
        rules, names = [], []
        for caller, of_it in faults.items():
            for name, rule in of_it.items():
                rules.append({**rule, "headers": {"authorization": self.keys[caller]}})
                names.append(f"{caller}: {name}")
        self.ids = dict(zip(self.proxy.set_rules(rules), names, strict=True))

    def count(self):
        """How often each fault has struck so far."""
        now = self.proxy.fired()
        for rule, name in self.ids.items():
            self.struck[name] = now[rule]
        return self.struck
