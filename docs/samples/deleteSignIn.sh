curl --fail-with-body -X DELETE "http://127.0.0.1:3002/alpha/browser-contexts/$BROWSER_CONTEXT_ID/sign-in" \
  -H "x-service-api-key: $API_KEY"
