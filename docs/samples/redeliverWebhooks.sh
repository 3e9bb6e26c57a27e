curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/webhook-endpoints/$ENDPOINT_ID/redeliver" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"since": "2026-11-20T09:00:00Z", "status": "failed"}'
