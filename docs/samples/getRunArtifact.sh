curl --fail-with-body -o "$ARTIFACT_NAME" \
  "http://127.0.0.1:3001/v1/execution/runs/$RUN_ID/artifacts/$ARTIFACT_NAME" \
  -H "Authorization: Bearer $API_KEY"
