import json
import os
import sys
import urllib.error
import urllib.request
import uuid

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/queue-remote/count-words",
    method="PUT",
    data=json.dumps({"variableData": {"path": "README.md", "top": 5}}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['API_KEY']}",
        "Content-Type": "application/json",
        # Should the answer get lost, send the same request again: it queues no second run.
        "Idempotency-Key": str(uuid.uuid4()),
    },
)
try:
    with urllib.request.urlopen(request) as response:
        run = json.load(response)
except urllib.error.HTTPError as error:
    # 401 and 403 are one word of plain text; all others are JSON with "detail" and "errors".
    sys.exit(f"{error.code}: {error.read().decode()}")
print(run["id"], run["status"])
