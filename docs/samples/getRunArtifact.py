import os
import shutil
import urllib.request

name = os.environ["ARTIFACT_NAME"]
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/runs/{os.environ['RUN_ID']}/artifacts/{name}",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response, open(name, "wb") as file:
    shutil.copyfileobj(response, file)
print("Wrote", name)
