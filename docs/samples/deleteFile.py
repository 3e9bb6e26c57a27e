import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/files/{os.environ['FILE_ID']}",
    method="DELETE",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request):
    print("Deleted", os.environ["FILE_ID"])
