import json
import os
import urllib.request

# `workflows build` of the command line writes deployment.json from a directory of workflows.
with open("deployment.json", "rb") as file:
    bundle = file.read()
request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/deployments",
    method="POST",
    data=bundle,
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    deployment = json.load(response)
for workflow in deployment["workflows"]:
    print(deployment["id"], workflow["id"], workflow["version"])
