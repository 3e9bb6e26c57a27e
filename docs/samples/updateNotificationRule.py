import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/notification-rules/{os.environ['RULE_ID']}",
    method="PATCH",
    data=json.dumps({"events": ["run.failed", "run.timedOut"]}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    rule = json.load(response)
print(rule["id"], rule["events"])
