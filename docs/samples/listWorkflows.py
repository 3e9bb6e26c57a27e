import json
import os
import urllib.parse
import urllib.request


def list_workflows():
    query = {}
    while True:
        request = urllib.request.Request(
            "http://127.0.0.1:3001/v1/execution/workflows?" + urllib.parse.urlencode(query),
            headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
        )
        with urllib.request.urlopen(request) as response:
            page = json.load(response)
        yield from page["data"]
        if page["nextCursor"] is None:
            return
        query["cursor"] = page["nextCursor"]


for workflow in list_workflows():
    print(workflow["id"], workflow["version"], workflow["title"])
