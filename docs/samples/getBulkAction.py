import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/bulk-actions/{os.environ['BULK_ACTION_ID']}",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    action = json.load(response)
print(action["kind"], action["status"], action["done"], "done", action["failed"], "failed")
