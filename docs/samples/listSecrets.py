import json
import os
import urllib.parse
import urllib.request

query = {"limit": 100}
while True:
    request = urllib.request.Request(
        f"http://127.0.0.1:3001/v1/execution/secrets?{urllib.parse.urlencode(query)}",
        headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
    )
    with urllib.request.urlopen(request) as response:
        page = json.load(response)
    for secret in page["data"]:
        print(secret["name"], secret["version"])
    if page["nextCursor"] is None:
        break
    query["cursor"] = page["nextCursor"]
