import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3002/alpha/browser-contexts/"
    f"{os.environ['BROWSER_CONTEXT_ID']}/versions/1/restore",
    method="POST",
    headers={"x-service-api-key": os.environ["API_KEY"]},
)
with urllib.request.urlopen(request) as response:
    version = json.load(response)
print("Version", version["version"], "has the state of version", version["restoredFrom"])
