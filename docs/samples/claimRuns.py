import json
import os
import urllib.request

body = {"countMax": 4, "waitSeconds": 30}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/workers/{os.environ['WORKER_ID']}/claims",
    method="POST",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    # 204: no run came.
    claims = json.load(response) if response.status == 200 else {"data": []}
for claim in claims["data"]:
    print(claim["runId"], claim["attempt"], claim["variableData"])
