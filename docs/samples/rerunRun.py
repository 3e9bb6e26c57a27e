import json
import os
import urllib.request

run_id = os.environ["RUN_ID"]
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{run_id}/rerun",
    method="POST",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Idempotency-Key": f"rerun-{run_id}"},
)
with urllib.request.urlopen(request) as response:
    run = json.load(response)
print(run["id"], run["status"], "repeats", run["rerunOf"])
