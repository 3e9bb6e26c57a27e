import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/settings/SHOP_URL",
    method="PUT",
    data=json.dumps({"value": "https://shop.example.com"}).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    setting = json.load(response)
print(setting["name"], setting["version"], setting["value"])
