curl --fail-with-body "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/waits" \
  -H "Authorization: Bearer $API_KEY"
