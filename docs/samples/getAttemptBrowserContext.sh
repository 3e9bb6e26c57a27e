# The file contains the sessions of the browser context: delete it when the browser is open.
curl --fail-with-body -o storage-state.json \
  "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/browser-context" \
  -H "Authorization: Bearer $API_KEY"
