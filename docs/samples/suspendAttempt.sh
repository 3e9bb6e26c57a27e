curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/suspend" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"waits": [{"kind": "sleep", "name": "pause", "seconds": 3600}], "names": ["pause"]}'
