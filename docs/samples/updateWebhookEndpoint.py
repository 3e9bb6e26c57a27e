import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/webhook-endpoints/{os.environ['ENDPOINT_ID']}",
    method="PATCH",
    data=json.dumps({"events": ["run.failed", "run.timedOut"]}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    endpoint = json.load(response)
print(endpoint["id"], endpoint["events"])
