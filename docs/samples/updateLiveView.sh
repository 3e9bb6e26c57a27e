curl --fail-with-body -X POST "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/attempts/1/live-views/$VIEW_ID" \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"control": {"phase": "free", "by": null, "message": null}, "waitForCommands": true}'
