import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3002/alpha/browser-contexts/{os.environ['BROWSER_CONTEXT_ID']}/sign-in",
    headers={"x-service-api-key": os.environ["API_KEY"]},
)
with urllib.request.urlopen(request) as response:
    sign_in = json.load(response)
print(sign_in["workflowId"], sign_in["status"], sign_in["waitingRuns"])
