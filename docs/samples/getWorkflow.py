import json
import os
import urllib.request

request = urllib.request.Request(
    "http://127.0.0.1:3001/v1/execution/workflows/count-words",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    workflow = json.load(response)
# The JSON Schema of variableData.
print(json.dumps(workflow["variablesSchema"], indent=2))
