curl --fail-with-body -X DELETE "http://127.0.0.1:3001/v1/execution/secrets/$SECRET_NAME" \
  -H "Authorization: Bearer $API_KEY"
