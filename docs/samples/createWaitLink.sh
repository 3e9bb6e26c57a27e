curl --fail-with-body "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/waits/approval/links" \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{"expiresInSeconds": 86400}'
