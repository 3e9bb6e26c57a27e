import json
import os
import urllib.request

body = {"name": "billing", "language": "Python 3.12", "capacity": 4, "workflows": [{"id": "send-invoice", "version": "1.0.0", "variables": {"type": "object", "required": ["orderId"], "properties": {"orderId": {"type": "string"}}}}]}
request = urllib.request.Request(
    f"http://127.0.0.1:3001/v1/execution/workers/{os.environ['WORKER_ID']}",
    method="PUT",
    data=json.dumps(body).encode(),
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    worker = json.load(response)
print(worker["id"], worker["leaseSeconds"])
