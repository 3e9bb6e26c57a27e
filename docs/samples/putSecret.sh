# From the standard input, since other users of the machine see the arguments of commands.
printf '{"value": "%s"}' "${SHOP_TOKEN:-4f1c0d0f2c5b1f0d8a6de21c0a3a3a1c}" |
  curl --fail-with-body -X PUT http://127.0.0.1:3001/v1/execution/secrets/SHOP_TOKEN \
    -H "Authorization: Bearer $API_KEY" \
    -H "Content-Type: application/json" \
    -d @-
