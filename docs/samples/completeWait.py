import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/waits/approval",
    method="PUT",
    data=json.dumps({"value": {"approved": True}}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['API_KEY']}",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    wait = json.load(response)
print(wait["status"], wait["value"])
