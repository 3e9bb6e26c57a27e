curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/workers/$WORKER_ID/leases" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d "{\"leases\": [{\"runId\": \"$RUN_ID\", \"attempt\": 1}]}"
