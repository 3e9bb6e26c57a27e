import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/notification-rules/{os.environ['RULE_ID']}/test",
    method="POST",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    message = json.load(response)
print(message["id"], message["status"])
