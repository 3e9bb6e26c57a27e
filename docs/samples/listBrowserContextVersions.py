import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3002/alpha/browser-contexts/"
    f"{os.environ['BROWSER_CONTEXT_ID']}/versions?limit=100",
    headers={"x-service-api-key": os.environ["API_KEY"]},
)
with urllib.request.urlopen(request) as response:
    for version in json.load(response)["data"]:
        print(version["version"], version["createdAt"], *version["cookieDomains"])
