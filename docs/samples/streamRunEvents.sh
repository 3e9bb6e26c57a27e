# -N prints each event immediately. To resume, send the last id: -H 'Last-Event-ID: 3'
curl --fail-with-body -N "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/events" \
  -H "Authorization: Bearer $API_KEY"
