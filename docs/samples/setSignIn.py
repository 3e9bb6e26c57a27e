import json
import os
import urllib.request

sign_in = {
    "workflowId": "sign-in",
    "variableData": {"user": "ada", "password": "correct horse battery staple"},
    "totpSeed": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "checkEverySeconds": 3600,
}
request = urllib.request.Request(
    f"http://127.0.0.1:3002/alpha/browser-contexts/{os.environ['BROWSER_CONTEXT_ID']}/sign-in",
    method="PUT",
    data=json.dumps(sign_in).encode(),
    headers={
        "x-service-api-key": os.environ["API_KEY"],
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    print(json.load(response)["status"])
