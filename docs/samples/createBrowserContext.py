import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3002/alpha/browser-contexts",
    method="POST",
    data=json.dumps({"name": "Shop, signed in"}).encode(),
    headers={
        "x-service-api-key": os.environ["API_KEY"],
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    context = json.load(response)
print(context["id"], context["status"], context["name"])
