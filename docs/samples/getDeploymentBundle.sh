curl --fail-with-body -o bundle.json.gz \
  "http://127.0.0.1:3001/v1/execution/deployments/$DEPLOYMENT_ID/bundle" \
  -H "Authorization: Bearer $API_KEY"
