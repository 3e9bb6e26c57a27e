curl --fail-with-body -X DELETE "http://127.0.0.1:3001/v1/execution/notification-rules/$RULE_ID" \
  -H "Authorization: Bearer $API_KEY"
