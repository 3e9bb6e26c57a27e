import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3002/alpha/browser-contexts/{os.environ['BROWSER_CONTEXT_ID']}",
    method="PATCH",
    data=json.dumps({"name": "Shop, as Ada"}).encode(),
    headers={
        "x-service-api-key": os.environ["API_KEY"],
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    context = json.load(response)
print(context["id"], context["name"])
