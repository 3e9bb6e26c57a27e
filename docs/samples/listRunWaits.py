import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/waits",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    page = json.load(response)
for wait in page["data"]:
    print(wait["runId"], wait["name"], wait["kind"], wait["status"])
