curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/events" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"position": 0, "events": [{"type": "log", "level": "info", "message": "Charging the card"}]}'
