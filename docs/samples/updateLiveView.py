import json
import os
import urllib.request

run = f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}"
body = {"control": {"phase": "free", "by": None, "message": None}, "waitForCommands": True}
request = urllib.request.Request(
    f"{run}/attempts/1/live-views/{os.environ['VIEW_ID']}",
    method="POST",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    view = json.load(response)
print(view["state"])
for command in view["commands"]:
    print(command["type"], "by", command["by"]["name"])
