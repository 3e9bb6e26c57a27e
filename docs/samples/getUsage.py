import json
import os
import urllib.parse
import urllib.request

query = urllib.parse.urlencode({"from": "2026-11-01", "to": "2026-11-30"})
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/usage?{query}",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    usage = json.load(response)
attempts = sum(row["attempts"] for row in usage["data"])
print(f"{attempts} attempts, counted until {usage['countedUntil']}")
