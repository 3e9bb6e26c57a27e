import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/webhook-endpoints",
    method="POST",
    data=json.dumps({"url": "https://example.com/hooks", "events": ["run.succeeded", "run.failed"]}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    endpoint = json.load(response)
# Store the secret now: it is not shown again.
print(endpoint["id"], endpoint["secret"])
