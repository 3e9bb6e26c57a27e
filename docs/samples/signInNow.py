import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3002/alpha/browser-contexts/{os.environ['BROWSER_CONTEXT_ID']}/sign-in/now",
    method="POST",
    headers={"x-service-api-key": os.environ["API_KEY"]},
)
with urllib.request.urlopen(request) as response:
    print(json.load(response)["runId"])
