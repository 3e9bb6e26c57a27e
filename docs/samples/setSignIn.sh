curl --fail-with-body -X PUT "http://127.0.0.1:3002/alpha/browser-contexts/$BROWSER_CONTEXT_ID/sign-in" \
  -H "x-service-api-key: $API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{
    "workflowId": "sign-in",
    "variableData": {"user": "ada", "password": "correct horse battery staple"},
    "totpSeed": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "checkEverySeconds": 3600
  }'
