import os
import urllib.request

# Written by Playwright's context.storage_state(path="state.json").
with open("state.json", "rb") as file:
    state = file.read()
request = urllib.request.Request(
    "http://127.0.0.1:3002/alpha/browser-contexts/"
    f"{os.environ['BROWSER_CONTEXT_ID']}/storage-state",
    method="PUT",
    data=state,
    headers={
        "x-service-api-key": os.environ["API_KEY"],
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as response:
    print("Stored:", response.status)
