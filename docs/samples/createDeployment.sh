# `workflows build` of the command line writes deployment.json from a directory of workflows.
curl --fail-with-body -X POST http://127.0.0.1:3001/v1/execution/deployments \
  -H "Authorization: Bearer $API_KEY" \
  -H "Content-Type: application/json" \
  --data-binary @deployment.json
