import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/schedules/{os.environ['SCHEDULE_ID']}",
    method="PATCH",
    data=json.dumps({"cron": "30 6 * * *", "paused": False}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    schedule = json.load(response)
print(schedule["id"], schedule["nextRunsAt"])
