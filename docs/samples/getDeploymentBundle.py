import os
import shutil
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/deployments/{os.environ['DEPLOYMENT_ID']}/bundle",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response, open("bundle.json.gz", "wb") as file:
    shutil.copyfileobj(response, file)
print("Wrote bundle.json.gz")
