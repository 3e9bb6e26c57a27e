"""Calls a running service, whose URL is the argument, with the key of API_KEY: a program of a caller."""

import json
import sys
from dataclasses import dataclass

from execution_service import ApiError, Client, RunFailed


@dataclass
class Greeted:
    greeting: str


with Client(sys.argv[1]) as client:
    result = {}
    result["output"] = client.run("greet", {"name": "Ada"}, timeout=30, output=Greeted).greeting
    queued = client.queue("greet", {"name": "Bob"}, tags=["a", "b"], priority=3)
    result["types"] = sorted({event["type"] for event in client.follow(queued)})
    result["status"] = client.wait(queued, timeout=30).status
    result["tags"] = queued.raw["tags"]
    result["same"] = len({client.queue("greet", {"name": "C"}, idempotency_key="k").id for _ in range(2)})
    later = client.queue("greet", {"name": "Dee"}, delay_seconds=3600)
    try:
        client.wait(later, timeout=1)
    except TimeoutError as error:
        result["timeout"] = str(error).replace(later.id, "ID")
    client.cancel(later)
    try:
        client.get(later).output
    except RunFailed as error:
        result["cancelled"] = error.status
    try:
        client.queue("greet", {"name": 1})
    except ApiError as error:
        result["invalid"] = [error.status, error.type, [each.location for each in error.errors]]
    result["listed"] = [run.id == queued.id for run in client.list(tag="a", limit=1)]
print(json.dumps(result))
