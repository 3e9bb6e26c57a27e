curl --fail-with-body -o invoice.pdf \
  "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/files/$FILE_ID" \
  -H "Authorization: Bearer $API_KEY"
