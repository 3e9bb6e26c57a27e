import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/webhook-endpoints/{os.environ['ENDPOINT_ID']}/redeliver",
    method="POST",
    data=json.dumps({"since": "2026-11-20T09:00:00Z", "status": "failed"}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    redelivery = json.load(response)
print(redelivery["count"])
