import json
import os
import urllib.request

body = {"waits": [{"kind": "sleep", "name": "pause", "seconds": 3600}], "names": ["pause"]}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/attempts/1/suspend",
    method="POST",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    result = json.load(response)
print(result)
