curl --fail-with-body http://127.0.0.1:3001/v1/execution/run-tokens \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Content-Type: application/json' \
  -d "{\"runId\": \"$RUN_ID\", \"expiresInSeconds\": 600}"
