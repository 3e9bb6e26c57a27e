import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/attempts/1/browser-context",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    storage_state = json.load(response)
for cookie in storage_state["cookies"]:
    print(cookie["name"], "of", cookie["domain"])
