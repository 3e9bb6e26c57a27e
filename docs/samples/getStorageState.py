import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3002/alpha/browser-contexts/"
    f"{os.environ['BROWSER_CONTEXT_ID']}/storage-state",
    headers={"x-service-api-key": os.environ["API_KEY"]},
)
# Protect this file like a password: it contains the sessions of the browser context.
with urllib.request.urlopen(request) as response, open("state.json", "wb") as file:
    file.write(response.read())
print("Wrote state.json")
