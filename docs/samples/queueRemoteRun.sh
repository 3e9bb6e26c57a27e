# Safe to repeat if the response is lost: the same Idempotency-Key queues one run.
curl --fail-with-body -X PUT http://127.0.0.1:3001/v1/execution/queue-remote/count-words \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: words-2026-11-20' \
  -d '{"variableData": {"path": "README.md", "top": 5}}'
