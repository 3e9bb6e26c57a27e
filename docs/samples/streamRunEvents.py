import json
import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/events",
    # To resume, send the last event's sequence too: "Last-Event-ID": "3".
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    for line in response:  # Receives each event until the run has finished.
        if line.startswith(b"data: "):
            event = json.loads(line[len(b"data: ") :])
            what = event.get("status") or event.get("message")
            print(event["sequence"], event["type"], what, flush=True)
