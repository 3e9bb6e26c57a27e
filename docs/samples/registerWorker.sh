curl --fail-with-body -X PUT "http://127.0.0.1:3001/v1/execution/workers/$WORKER_ID" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"name": "billing", "language": "Python 3.12", "capacity": 4, "workflows": [{"id": "send-invoice", "version": "1.0.0", "variables": {"type": "object", "required": ["orderId"], "properties": {"orderId": {"type": "string"}}}}]}'
