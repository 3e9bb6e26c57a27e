import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/waits/approval/links",
    method="POST",
    data=json.dumps({"expiresInSeconds": 86400}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['API_KEY']}",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    link = json.load(response)
# Send the link to the person who decides: it takes one answer.
print(link["url"], "expires at", link["expiresAt"])
