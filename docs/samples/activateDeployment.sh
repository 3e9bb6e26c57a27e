curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/deployments/$DEPLOYMENT_ID/activate" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"allowBreaking": true}'
