curl --fail-with-body -X PUT "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/steps/charge" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"value": {"paymentId": "pay_81f3"}}'
