curl --fail-with-body -X PATCH "http://127.0.0.1:3001/v1/execution/schedules/$SCHEDULE_ID" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"cron": "30 6 * * *", "paused": false}'
