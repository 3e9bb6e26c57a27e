curl --fail-with-body -X POST http://127.0.0.1:3002/alpha/browser-contexts \
  -H "x-service-api-key: $API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{"name": "Shop, signed in"}'
