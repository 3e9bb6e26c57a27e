# state.json was written by Playwright's context.storageState({ path: 'state.json' }).
curl --fail-with-body -T state.json \
  "http://127.0.0.1:3002/alpha/browser-contexts/$BROWSER_CONTEXT_ID/storage-state" \
  -H "x-service-api-key: $API_KEY" \
  -H 'Content-Type: application/json'
