curl --fail-with-body -X PATCH "http://127.0.0.1:3002/alpha/browser-contexts/$BROWSER_CONTEXT_ID" \
  -H "x-service-api-key: $API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{"name": "Shop, as Ada"}'
