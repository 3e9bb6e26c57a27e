# With -H "Accept: text/csv", the response is CSV.
curl --fail-with-body "http://127.0.0.1:3001/v1/execution/usage?from=2026-11-01&to=2026-11-30" \
  -H "Authorization: Bearer $API_KEY"
