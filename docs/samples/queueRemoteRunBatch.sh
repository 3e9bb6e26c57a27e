# Safe to repeat if the response is lost: the same Idempotency-Key queues one batch.
curl --fail-with-body http://127.0.0.1:3001/v1/execution/queue-remote-batch \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: words-2026-11-20' \
  -d '{"runs": [
        {"workflowId": "count-words", "variableData": {"path": "README.md"}},
        {"workflowId": "count-words", "variableData": {"path": "LICENSE"}, "priority": -5}
      ]}'
