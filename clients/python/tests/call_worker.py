"""Queues runs that a Python worker executes, against the service whose URL is the argument."""

import json
import sys
import time
from pathlib import Path

from execution_service import ApiError, Client, RunFailed

sys.path.insert(0, str(Path(__file__).parent / "workflows"))
import leaving
from greetings import Approval, Greeting, approval, greet

with Client(sys.argv[1]) as client:
    result = {}
    # The worker registers the workflow a moment after its start.
    for _ in range(300):
        try:
            run = client.queue(greet, Greeting("Ada"))
            break
        except ApiError as error:
            if error.status != 404:
                raise
            time.sleep(0.1)
    result["events"] = [
        [event["type"], event.get("message") or event.get("name") or event.get("status"), event.get("state")]
        for event in client.follow(run)
    ]
    result["output"] = client.get(run).output.text
    result["artifact"] = client.artifact(run, "greeting.txt").decode()
    for mode in ("fail", "exit", "stuck"):
        failed = client.wait(client.queue(greet, Greeting("Ada", mode)), timeout=60)
        result[mode] = [failed.status, failed.reason, failed.error and failed.error.message]
        if mode == "fail":
            result["error"] = [failed.error.step, failed.error.stack.rpartition(", in ")[2]]
    asking = client.queue(greet, Greeting("Bob", "ask"))
    while not client.waits(asking):
        time.sleep(0.05)
    client.answer(asking, approval, Approval(True))
    result["asked"] = client.wait(asking, timeout=60).output.text
    made = [client.queue("python-factory") for _ in range(2)]
    for each in made:
        while not client.waits(each):
            time.sleep(0.05)
        client.answer(each, "approval", True)
    ids = [client.wait(each, timeout=60).output for each in made]
    result["made"] = [before == after for before, after in ids] + [ids[0] != ids[1]]
    awaiting = client.queue(leaving.awaiting, leaving.Mode())
    client.answer(awaiting, leaving.approval, True)
    logs = [event["message"] for event in client.follow(awaiting) if event["type"] == "log"]
    result["awaited"] = [client.get(awaiting).output, logs]
    large = client.wait(client.queue(leaving.leaving, leaving.Mode("large")), timeout=60)
    result["large"] = [large.reason, large.error.name]
    blocked = client.queue(greet, Greeting("Ada", "block"))
    while client.get(blocked).status != "running":
        time.sleep(0.05)
    client.cancel(blocked)
    try:
        client.wait(blocked, timeout=60).output
    except RunFailed as error:
        result["cancelled"] = error.status
    many = [client.queue(greet, Greeting(str(number))) for number in range(50)]
    started = time.monotonic()
    result["many"] = len({client.wait(each, timeout=120).output.text for each in many})
    print(f"50 runs in {time.monotonic() - started:.2f} s", file=sys.stderr)
print(json.dumps(result))
