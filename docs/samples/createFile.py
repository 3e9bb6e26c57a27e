import json
import os
import urllib.parse
import urllib.request

name = os.environ["FILE_NAME"]
with open(name, "rb") as content:
    request = urllib.request.Request(
        "http://127.0.0.1:3001/v1/execution/files?" + urllib.parse.urlencode({"name": name}),
        method="POST",
        data=content,
        headers={
            "Authorization": f"Bearer {os.environ['API_KEY']}",
            "Content-Type": "application/pdf",
            "Content-Length": str(os.path.getsize(name)),
        },
    )
    with urllib.request.urlopen(request) as response:
        file = json.load(response)
print(file["id"], file["bytes"])
