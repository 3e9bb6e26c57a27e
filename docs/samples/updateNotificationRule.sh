curl --fail-with-body -X PATCH "http://127.0.0.1:3001/v1/execution/notification-rules/$RULE_ID" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"events": ["run.failed", "run.timedOut"]}'
