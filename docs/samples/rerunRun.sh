curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/rerun" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Idempotency-Key: rerun-$RUN_ID"
