"""Sends a value of each type through the service, whose URL is the argument, and prints those that come back as others."""

import json
import sys
import time
from pathlib import Path

from execution_service import ApiError, Client

sys.path.insert(0, str(Path(__file__).parent / "types"))
from echo import CASES, WORKFLOWS

with Client(sys.argv[1]) as client:
    # The worker registers the workflows a moment after its start.
    for _ in range(600):
        try:
            client.queue("echo-str", {"value": ""})
            break
        except ApiError as error:
            if error.status != 404:
                raise
            time.sleep(0.1)
    changed = {}
    runs = {}
    for name, (_, value) in CASES.items():
        try:
            runs[name] = client.queue(WORKFLOWS[name], WORKFLOWS[name].variables(value))
        except ApiError as error:
            changed[name] = str(error)
    for name, run in runs.items():
        ended = client.wait(run, timeout=60)
        value = ended.output if ended.status == "succeeded" else str(ended.error)
        if value != CASES[name][1] or type(value) is not type(CASES[name][1]):
            changed[name] = repr(value)
print(json.dumps({"changed": changed, "count": len(runs)}))
