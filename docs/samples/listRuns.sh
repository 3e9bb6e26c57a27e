# The next page: add "&cursor=" and the nextCursor of this one, until that is null.
curl --fail-with-body 'http://127.0.0.1:3001/v1/execution/runs?status=queued&limit=100' \
  -H "Authorization: Bearer $API_KEY"
