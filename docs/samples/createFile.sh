curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/files?name=$FILE_NAME" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/pdf" \
  -T "$FILE_NAME"
