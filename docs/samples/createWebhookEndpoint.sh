curl --fail-with-body -X POST http://127.0.0.1:3001/v1/execution/webhook-endpoints \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"url": "https://example.com/hooks", "events": ["run.succeeded", "run.failed"]}'
