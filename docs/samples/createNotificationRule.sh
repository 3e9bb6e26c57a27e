curl --fail-with-body -X POST http://127.0.0.1:3001/v1/execution/notification-rules \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"name": "Failed runs", "events": ["run.failed"], "channel": "slack", "url": "https://hooks.slack.com/services/T000/B000/XXXX"}'
