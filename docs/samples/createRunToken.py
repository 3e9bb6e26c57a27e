import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/run-tokens",
    method="POST",
    data=json.dumps({"runId": os.environ["RUN_ID"], "expiresInSeconds": 600}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['API_KEY']}",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    token = json.load(response)
print(token["token"], "expires at", token["expiresAt"])
