import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/deployments/{os.environ['DEPLOYMENT_ID']}/activate",
    method="POST",
    data=json.dumps({"allowBreaking": True}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    deployment = json.load(response)
print(deployment["id"], deployment["activatedAt"])
