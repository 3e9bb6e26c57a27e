import json
import os
import urllib.parse
import urllib.request


def list_browser_contexts():
    query = {"limit": 100}
    while True:
        request = urllib.request.Request(
            "http://127.0.0.1:3002/alpha/browser-contexts?" + urllib.parse.urlencode(query),
            headers={"x-service-api-key": os.environ["API_KEY"]},
        )
        with urllib.request.urlopen(request) as response:
            page = json.load(response)
        yield from page["data"]
        if page["nextCursor"] is None:
            return
        query["cursor"] = page["nextCursor"]


for context in list_browser_contexts():
    print(context["id"], context["status"], context["name"])
