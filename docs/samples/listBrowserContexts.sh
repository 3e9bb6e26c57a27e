# For the next page, add "&cursor=" and the nextCursor of this page. On the last page it is null.
curl --fail-with-body 'http://127.0.0.1:3002/alpha/browser-contexts?limit=100' \
  -H "x-service-api-key: $API_KEY"
