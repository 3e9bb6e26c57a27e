import json
import os
import urllib.request

schedule = {
    "workflowId": "count-words",
    "variableData": {"path": "README.md"},
    "cron": "0 7 * * MON-FRI",
    "timeZone": "Europe/Berlin",
    "missed": "runOnce",
    "overlap": "skip",
}
request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/schedules",
    method="POST",
    data=json.dumps(schedule).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    created = json.load(response)
print(created["id"], created["nextRunsAt"])
