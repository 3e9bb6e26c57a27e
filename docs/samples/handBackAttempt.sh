curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/hand-back" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"message": "The printer is not connected."}'
