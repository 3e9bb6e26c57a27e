import json
import os
import urllib.parse
import urllib.request


def list_runs(**filters):
    query = {**filters, "limit": 100}
    while True:
        request = urllib.request.Request(
            "http://127.0.0.1:3001/v1/execution/runs?" + urllib.parse.urlencode(query),
            headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
        )
        with urllib.request.urlopen(request) as response:
            page = json.load(response)
        yield from page["data"]
        if page["nextCursor"] is None:
            return
        query["cursor"] = page["nextCursor"]


for run in list_runs(status="queued"):
    print(run["id"], run["workflowId"], run["createdAt"])
