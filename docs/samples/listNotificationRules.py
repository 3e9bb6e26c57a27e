import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/notification-rules",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    for rule in json.load(response)["data"]:
        print(rule["id"], rule["name"], rule["lastMessage"])
