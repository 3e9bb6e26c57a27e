import json
import os
import urllib.request

body = {"mediaType": "text/plain", "content": "SGVsbG8="}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/attempts/1/artifacts/invoice.txt",
    method="PUT",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    print("Stored:", response.status)
