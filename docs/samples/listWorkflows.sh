# For the next page, add "?cursor=" and the nextCursor of this page. On the last page it is null.
curl --fail-with-body http://127.0.0.1:3001/v1/execution/workflows \
  -H "Authorization: Bearer $API_KEY"
