"""A small service for tests of the worker: it leases the runs that a test queues, and keeps what the worker reports."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeService:
    def __init__(self):
        self.changed = threading.Condition()
        self.worker = None
        self.registrations = 0
        self.executing = None
        self.deleted = False
        self.queued = []
        self.reports = []
        self.cancelled = set()
        self.outages = []
        self.answers = {}
        #: Contents by id.
        self.files = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                status, answer, headers = service.handle(self.command, self.path, body, self.headers)
                content = b"" if answer is None else answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                try:
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:
                    pass  # A worker that has stopped waits for no claims.

            do_GET = do_PUT = do_POST = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # Workers that are killed reset their connections.
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def queue(self, **claim):
        with self.changed:
            number = len(self.queued) + len(self.reports) + 1
            claim = {
                "runId": f"00000000-0000-4000-8000-{number:012}",
                "workflowId": "python-greet",
                "workflowVersion": "1.0.0",
                "attempt": 7,
                "number": 1,
                "steps": [],
                "hasWaits": False,
                "timeLimitSeconds": 60,
                **claim,
            }
            self.queued.append(claim)
            self.changed.notify_all()
            return claim["runId"]

    def handle(self, method, path, body, headers):
        if headers["Authorization"] != "Bearer key":
            return 401, None, {}
        with self.changed:
            if self.outages and (method, path.rsplit("/", 1)[-1]) == self.outages[0][:2]:
                return (self.outages.pop(0)[2], {"title": "Unavailable", "detail": "Again."}, {"Retry-After": "0"})
            try:
                return self._handle(method, path, body)
            finally:
                self.changed.notify_all()

    def _handle(self, method, path, body):
        parts = path.split("/")[3:]
        if parts[0] == "workers" and len(parts) == 2:
            if method == "DELETE":
                self.deleted = True
                return 204, None, {}
            self.worker, self.registrations = body, self.registrations + 1
            return 200, {"id": parts[1], "leaseSeconds": 3}, {}
        if parts[-1] == "claims":
            if self.worker is None:
                return 404, {"title": "Not found", "detail": "No such worker."}, {}
            self.executing = body["executing"]
            self.changed.wait_for(lambda: self.queued, 0.2)
            claims, self.queued = self.queued[: body["countMax"]], self.queued[body["countMax"] :]
            return (200, {"data": claims}, {}) if claims else (204, None, {})
        if parts[-1] == "leases":
            cancelled = [each for each in body["leases"] if each["runId"] in self.cancelled]
            extended = [each for each in body["leases"] if each not in cancelled]
            return 200, {"extended": extended, "cancelled": cancelled, "lost": []}, {}
        if parts[4] == "files":
            content = self.files.get(parts[5])
            return (404, {"title": "Not found", "detail": "No such file."}, {}) if content is None else (200, content, {})
        self.reports.append((parts[1], parts[4], parts[5:], body))
        if parts[4] == "complete":
            return 200, {"status": "succeeded", "reason": None}, {}
        if parts[4] == "suspend":
            ended = [{"name": n, "outcome": self.answers[n]} for n in body["names"] if n in self.answers]
            return 200, {"suspended": body["suspend"] and not ended, "ended": ended, "refused": []}, {}
        return 204, None, {}

    def until(self, condition, seconds=20):
        with self.changed:
            if not self.changed.wait_for(condition, seconds):
                raise AssertionError(f"It has not happened: {self.reports}")

    def of(self, run_id, kind):
        return [body for run, each, _, body in self.reports if run == run_id and each == kind]

    def events(self, run_id):
        """Also those that came with another report."""
        bodies = [body for each, _, _, body in self.reports if each == run_id and body and "events" in body]
        return [event for body in bodies for event in (body if "position" in body else body["events"])["events"]]

    def end_of(self, run_id, kind="complete"):
        self.until(lambda: self.of(run_id, kind))
        return self.of(run_id, kind)[0]
