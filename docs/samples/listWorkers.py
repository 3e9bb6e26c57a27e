import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/workers",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    page = json.load(response)
for worker in page["data"]:
    print(worker["name"], worker["language"], worker["capacity"])
