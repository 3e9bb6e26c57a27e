import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}",
    method="DELETE",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
# A run that has not finished is refused (409): cancel it first.
with urllib.request.urlopen(request) as response:
    print("Erased:", response.status)
