import json
import os
import urllib.request

body = {"outcome": "succeeded", "output": {"invoice": "I-2026-0042"}}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/attempts/1/complete",
    method="POST",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    run = json.load(response)
print(run["status"])
