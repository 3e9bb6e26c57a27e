import json
import os
import urllib.request

body = {"message": "The printer is not connected."}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/attempts/1/hand-back",
    method="POST",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    print("Handed back:", response.status)
