import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/runs/bulk-cancel",
    method="POST",
    data=json.dumps({"tag": ["customer:42"]}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    action = json.load(response)
print(action["id"], action["kind"], action["status"])
