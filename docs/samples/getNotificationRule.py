import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/notification-rules/{os.environ['RULE_ID']}",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    rule = json.load(response)
print(rule["name"], rule["lastMessage"])
