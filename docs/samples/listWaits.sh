curl --fail-with-body "http://127.0.0.1:3001/v1/execution/waits?kind=answer&status=open" \
  -H "Authorization: Bearer $API_KEY"
