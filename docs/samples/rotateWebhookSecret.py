import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/webhook-endpoints/{os.environ['ENDPOINT_ID']}/rotate-secret",
    method="POST",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    endpoint = json.load(response)
# Store the secret now: it is not shown again.
print(endpoint["secret"])
