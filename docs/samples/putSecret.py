import json
import os
import urllib.request

# Not an argument of the command, which other users of the machine see.
value = os.environ.get("SHOP_TOKEN", "4f1c0d0f2c5b1f0d8a6de21c0a3a3a1c")
request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/secrets/SHOP_TOKEN",
    method="PUT",
    data=json.dumps({"value": value}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    secret = json.load(response)
print(secret["name"], secret["version"])
