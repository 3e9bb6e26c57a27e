curl --fail-with-body http://127.0.0.1:3001/v1/execution/notification-rules \
  -H "Authorization: Bearer $API_KEY"
