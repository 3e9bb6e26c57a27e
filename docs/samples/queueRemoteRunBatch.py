import json
import os
import sys
import urllib.error
import urllib.request
import uuid

paths = ["README.md", "LICENSE"]
runs = [{"workflowId": "count-words", "variableData": {"path": path}} for path in paths]
request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/queue-remote-batch",
    method="POST",
    data=json.dumps({"runs": runs}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['API_KEY']}",
        "Content-Type": "application/json",
        # Makes the request safe to repeat if the response is lost.
        "Idempotency-Key": str(uuid.uuid4()),
    },
)
try:
    with urllib.request.urlopen(request) as response:
        batch = json.load(response)
except urllib.error.HTTPError as error:
    # JSON with "detail" and "errors", such as "/runs/17/variableData/path". No run was queued.
    sys.exit(f"{error.code}: {error.read().decode()}")
for run in batch["data"]:
    print(run["id"], run["status"])
