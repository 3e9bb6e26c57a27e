curl --fail-with-body http://127.0.0.1:3001/v1/execution/runs/bulk-rerun \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{"workflowId": "count-words", "status": ["failed", "timedOut"]}'
