import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/workflows",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    workflows = json.load(response)["data"]
for workflow in workflows:
    print(workflow["id"], workflow["version"], workflow["title"])
