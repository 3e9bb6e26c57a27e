curl --fail-with-body -X PUT http://127.0.0.1:3001/v1/execution/settings/SHOP_URL \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"value": "https://shop.example.com"}'
