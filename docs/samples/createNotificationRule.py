import json
import os
import urllib.request

rule = {
    "name": "Failed runs",
    "events": ["run.failed"],
    "channel": "slack",
    "url": "https://hooks.slack.com/services/T000/B000/XXXX",
}
request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/notification-rules",
    method="POST",
    data=json.dumps(rule).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    created = json.load(response)
print(created["id"], created["host"])
