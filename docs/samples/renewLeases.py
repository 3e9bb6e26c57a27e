import json
import os
import urllib.request

body = {"leases": [{"runId": os.environ["RUN_ID"], "attempt": 1}]}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/workers/{os.environ['WORKER_ID']}/leases",
    method="POST",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    leases = json.load(response)
print(leases["extended"], leases["cancelled"], leases["lost"])
