curl --fail-with-body -X PUT "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/artifacts/invoice.txt" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"mediaType": "text/plain", "content": "SGVsbG8="}'
