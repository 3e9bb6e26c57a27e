# Protect this file like a password: it contains the sessions of the browser context.
curl --fail-with-body -o state.json \
  "http://127.0.0.1:3002/alpha/browser-contexts/$BROWSER_CONTEXT_ID/storage-state" \
  -H "x-service-api-key: $API_KEY"
