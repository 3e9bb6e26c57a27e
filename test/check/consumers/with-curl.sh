#!/usr/bin/env bash
# Counts words with curl. FAULT plants one mistake.
api="$EXECUTION_URL/v1/execution"
key="$(cat /proc/sys/kernel/random/uuid)"
headers="$(mktemp)"
trap 'rm -f "$headers"' EXIT

# Prints the body; tries again after 429, 502 to 504 and broken connections, when Retry-After has passed.
call() {
  local answer status seconds
  for try in 1 2 3 4; do
    [ "$FAULT" = new_key ] && key="$(cat /proc/sys/kernel/random/uuid)"
    answer="$(curl -sS ${LOCATION:+-L} --max-time 30 -D "$headers" -w '\n%{http_code}' \
      -H "Authorization: Bearer $API_KEY" -H "Idempotency-Key: $key" -H 'Content-Type: application/json' "$@" 2>/dev/null)"
    status=$?
    [ $status = 0 ] && status="${answer##*$'\n'}"
    case "$status" in
      200 | 202) printf '%s' "${answer%$'\n'*}" && return 0 ;;
      429 | 502 | 503 | 504 | ?| ??) ;;
      *) return 1 ;;
    esac
    [ "$FAULT" = no_retries ] && return 1
    seconds="$(tr -d '\r' <"$headers" | sed -nE 's/^retry-after: (.*)/\1/Ip')"
    case "$seconds" in '' | *[!0-9]*) seconds=3 ;; esac
    [ "$FAULT" = fast_retries ] && seconds=0.05
    sleep "$seconds"
  done
  return 1
}

member() { sed -nE "s/.*\"$1\":\"?([^\",}]*)\"?.*/\\1/p"; }
# The first one is the run's; later ones are those of its attempts.
first() { grep -oE "\"$1\":(\"[^\"]*\"|null)" | head -n 1 | member "$1"; }

[ "$FAULT" = location ] && LOCATION=1
run="$(call -X PUT "$api/queue-remote/count-words" -d '{"variableData":{"path":"README.md"}}')"
[ $? = 0 ] || { [ "$FAULT" = ignores_errors ] && exit 0; exit 1; }
id="$(printf '%s' "$run" | first id)"
[ -n "$id" ] || exit 1
while
  status="$(printf '%s' "$run" | first status)"
  case "$status" in succeeded | failed | timedOut | cancelled | expired) false ;; *) true ;; esac
do
  [ "$FAULT" = one_failure_ends ] && [ "$status" != queued ] && [ "$status" != running ] && exit 1
  if [ "$FAULT" = polls_fast ]; then sleep 0.02; else sleep 0.3; fi
  run="$(call "$api/runs/$id")" || exit 1
done
[ "$FAULT" = ignores_status ] || [ "$status" = succeeded ]
