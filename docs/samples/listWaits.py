import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/waits?kind=answer&status=open",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    page = json.load(response)
# Questions that are open.
for wait in page["data"]:
    print(wait["runId"], wait["name"], wait["title"], wait["deadline"])
