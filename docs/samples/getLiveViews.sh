curl --fail-with-body "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/live-views?waitSeconds=1" \
  -H "Authorization: Bearer $API_KEY"
