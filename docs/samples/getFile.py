import os
import shutil
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/files/{os.environ['FILE_ID']}",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response, open("invoice.pdf", "wb") as file:
    shutil.copyfileobj(response, file)
print("Wrote invoice.pdf")
