import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/openapi.json",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    document = json.load(response)
# The operations of workflows are the last ones.
print("\n".join(document["paths"]))
