"""Counts words with Python's standard library. `FAULT` plants one mistake."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

FAULT = os.environ.get("FAULT", "")
KEY = str(uuid.uuid4())


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(*([] if FAULT == "follows_redirects" else [NoRedirects]))


def seconds_until(retry_after):
    try:
        return float(retry_after)
    except ValueError:
        from email.utils import parsedate_to_datetime

        return parsedate_to_datetime(retry_after).timestamp() - time.time()


def call(method, path, body=None):
    for failures in range(1, 5):
        headers = {"Authorization": "Bearer " + os.environ["API_KEY"], "Content-Type": "application/json"}
        if method == "PUT":
            headers["Idempotency-Key"] = str(uuid.uuid4()) if FAULT == "new_key" else KEY
        request = urllib.request.Request(
            os.environ["EXECUTION_URL"] + "/v1/execution/" + path,
            method=method,
            headers=headers,
            data=None if body is None else json.dumps(body).encode(),
        )
        retry_after = None
        try:
            with opener.open(request, timeout=3 if FAULT == "short_timeout" else 30) as response:
                content = response.read()
                if "json" not in response.headers.get("Content-Type", ""):
                    sys.exit("not JSON")
                return json.loads(content)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 502, 503, 504):
                sys.exit(str(error.code))
            retry_after = error.headers.get("Retry-After")
            if FAULT == "parses_problems":
                json.load(error)
        except (OSError, ValueError, __import__("http.client").client.HTTPException):
            if FAULT == "no_retry_after_cut":
                raise
        if FAULT == "ignores_retry_after":
            retry_after = None
        time.sleep(seconds_until(retry_after) if retry_after else 0.4 * failures)
    sys.exit("gave up")


def main():
    run = call("PUT", "queue-remote/count-words", {"variableData": {"path": "README.md"}})
    for _ in range(8 if FAULT == "gives_up" else 1_000_000):
        if run["finishedAt"] is not None:
            break
        time.sleep(0.1 if FAULT == "gives_up" else 0.25)
        run = call("GET", "runs/" + run["id"])
    if FAULT == "wants_words":
        return print(run["output"]["words"])
    if FAULT != "ignores_status" and run["status"] != "succeeded":
        sys.exit(run["status"])


main()
