curl --fail-with-body -X POST http://127.0.0.1:3001/v1/execution/schedules \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"workflowId": "count-words", "variableData": {"path": "README.md"}, "cron": "0 7 * * MON-FRI", "timeZone": "Europe/Berlin"}'
