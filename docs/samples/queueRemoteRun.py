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
        # Makes the request safe to repeat if the response is lost.
        "Idempotency-Key": str(uuid.uuid4()),
    },
)
try:
    with urllib.request.urlopen(request) as response:
        run = json.load(response)
except urllib.error.HTTPError as error:
    # JSON with "detail" and "errors", except for 401 and 403, which are plain text.
    sys.exit(f"{error.code}: {error.read().decode()}")
print(run["id"], run["status"])
