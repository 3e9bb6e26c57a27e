curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/schedules/$SCHEDULE_ID/trigger" \
  -H "Authorization: Bearer $API_KEY"
