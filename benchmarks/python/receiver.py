"""A webhook receiver as it is usually written, to compare with.

One process of FastAPI and uvicorn over SQLite: checks the signature, reads the body as JSON, inserts
a row under a unique key, commits, and only then answers. `first` is how people write it first;
`tuned` is what someone who measures makes of it without giving up that a 202 is on the disk.

usage: receiver.py first|tuned DATABASE SECRET
"""

import hashlib
import hmac
import json
import socket
import sqlite3
import sys

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response

SCHEMA = """
CREATE TABLE IF NOT EXISTS deliveries (
    job_id      TEXT NOT NULL,
    event       TEXT NOT NULL,
    received_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (event, job_id)
)
"""


def open_database(path: str, tuned: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    if tuned:
        # FULL syncs the log at each commit; NORMAL, which is often advised, would lose what was
        # answered with 202 when the power fails.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -32768")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute(SCHEMA)
    connection.commit()
    return connection


def make_app(database: sqlite3.Connection, secret: bytes) -> FastAPI:
    app = FastAPI()

    @app.post("/webhook", status_code=202)
    async def webhook(request: Request):
        body = await request.body()
        claimed = request.headers.get("x-webhook-signature", "").removeprefix("sha256=")
        expected = hmac.new(secret, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(claimed.encode(), expected.encode()):
            raise HTTPException(status_code=401, detail="bad signature")
        payload = json.loads(body)
        row = (payload["data"]["job_id"], payload["event"])
        try:
            with database:
                database.execute("INSERT INTO deliveries (job_id, event) VALUES (?, ?)", row)
        except sqlite3.IntegrityError:
            return {"status": "known"}
        return {"status": "accepted"}

    return app


def make_tuned_app(database: sqlite3.Connection, secret: bytes) -> FastAPI:
    """The same without what costs time per request: keying the HMAC anew, JSON in the answers,
    transactions that Python opens and closes around a single statement."""
    app = FastAPI(openapi_url=None)
    keyed = hmac.new(secret, digestmod=hashlib.sha256)
    database.isolation_level = None

    @app.post("/webhook")
    async def webhook(request: Request) -> Response:
        body = await request.body()
        claimed = request.headers.get("x-webhook-signature", "").removeprefix("sha256=")
        digest = keyed.copy()
        digest.update(body)
        if not hmac.compare_digest(claimed.encode(), digest.hexdigest().encode()):
            return Response(status_code=401)
        payload = json.loads(body)
        row = (payload["data"]["job_id"], payload["event"])
        try:
            # A statement outside a transaction commits itself.
            database.execute("INSERT INTO deliveries (job_id, event) VALUES (?, ?)", row)
        except sqlite3.IntegrityError:
            return Response(status_code=200)
        return Response(status_code=202)

    return app


def main() -> None:
    setup, path, secret = sys.argv[1:]
    tuned = setup == "tuned"
    database = open_database(path, tuned)
    if tuned:
        app = make_tuned_app(database, secret.encode())
        config = uvicorn.Config(
            app, loop="uvloop", http="httptools", lifespan="off", access_log=False,
            log_level="warning",
        )
    else:
        app = make_app(database, secret.encode())
        config = uvicorn.Config(app, loop="asyncio", http="h11")
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    address = "http://{}:{}/webhook".format(*listener.getsockname())
    print(json.dumps({"listening": address}), flush=True)
    # The access log of uvicorn goes to standard output, and nobody reads on.
    sys.stdout = open("/dev/null", "w")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
