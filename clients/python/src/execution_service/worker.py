"""The worker: claims runs from the service, executes each in a process, and reports what it does."""

from __future__ import annotations

import collections
import copy
import http.client
import json
import logging
import multiprocessing.connection
import os
import platform
import signal
import shutil
import socket
import tempfile
import threading
import time
import uuid
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

from ._version import __version__
from .errors import ApiError, ExecutionServiceError, LoadError, ServiceUnreachable
from .http import TEMPORARY, Transport, backoff, dump_json, quote
from .process import AttemptProcess
from .run import cut

log = logging.getLogger("execution_service")

_FLUSH_SECONDS = 0.25
_EVENTS_MAX = 500
_EVENT_BYTES_MAX = 512 * 1024
#: At most this many bytes of events are sent with another report.
_BYTES_BEFORE_MAX = 64 * 1024
#: Runs are claimed ahead of free slots while attempts are shorter than this on average, and are returned to the service
#: if no slot has become free after half a second: another worker may have one.
_SHORT_SECONDS = 0.05
_AHEAD_SECONDS_MAX = 0.5
#: The weight of the last attempt in the average.
_WEIGHT = 0.1
_REASONS = {
    "timedOut": "The attempt exceeded the workflow's time limit.",
    "cancelled": "The run was cancelled.",
    "lost": "The worker lost the run's lease.",
    "stopped": "The worker is stopping.",
}

_THREW = {"type": "threw", "reason": "workflowFailed"}


class LeaseLost(Exception):
    """The attempt is over for this worker."""


class Worker:
    """Executes runs of workflows.

    :param sources: modules such as ``invoices.workflows``, files, or directories with files.
    :param capacity: how many runs it executes at the same time.
    :param grace_seconds: for how long running attempts may go on when the worker stops.
    :param abort_grace_seconds: after which a process is killed whose attempt has to end.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        sources: Sequence[str],
        *,
        capacity: int = 4,
        name: Optional[str] = None,
        grace_seconds: float = 25,
        abort_grace_seconds: float = 5,
    ) -> None:
        self.id = str(uuid.uuid4())
        self.capacity = capacity
        self.abort_grace_seconds = abort_grace_seconds
        self.transport = Transport(url, api_key)
        self.stopping = threading.Event()
        self._sources = list(sources)
        self._name = name or socket.gethostname()
        self._grace_seconds = grace_seconds
        self._path = f"/v1/execution/workers/{self.id}"
        self._lease_seconds = 30.0
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        #: Of all claims that have not ended.
        self._attempts: Dict[Tuple[str, int], Attempt] = {}
        #: Those that wait for a slot, with the time of their claim.
        self._ready: Deque[Tuple[float, Attempt]] = collections.deque()
        self._has_ready = threading.Condition(lock)
        self._average_seconds = 2 * _SHORT_SECONDS
        self._idle: List[AttemptProcess] = []
        self._workflows: Dict[str, Dict[str, Any]] = {}
        self._failure: Optional[ExecutionServiceError] = None
        self._closed = threading.Event()

    def run(self) -> None:
        """Executes runs until SIGTERM or SIGINT. :raises ExecutionServiceError: if the worker cannot go on."""
        if threading.current_thread() is threading.main_thread():
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, lambda *_: self.stop())
        process = AttemptProcess(self._sources)
        try:
            self._workflows = {each["id"]: each for each in process.load()}
        except LoadError:
            process.kill()
            raise
        self._idle.append(process)
        try:
            if not self._register():
                return
            log.info("worker %s executes %s", self.id, ", ".join(sorted(self._workflows)))
            for target in (self._claim_forever, self._renew_forever, *[self._execute_forever] * self.capacity):
                threading.Thread(target=target, daemon=True).start()
            while not self.stopping.wait(3600):
                pass
            self._drain()
        finally:
            self._close()
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        self.stopping.set()

    def _register(self) -> bool:
        body = {
            "name": self._name[:100],
            "language": f"Python {platform.python_version()}",
            "version": __version__,
            "host": socket.gethostname()[:255],
            "capacity": self.capacity,
            "workflows": list(self._workflows.values()),
        }
        for failures in range(1, 1_000_000):
            try:
                worker = self.transport.request("PUT", self._path, body, attempts=1).json()
                self._lease_seconds = float(worker["leaseSeconds"])
                return True
            except ExecutionServiceError as error:
                if isinstance(error, ApiError) and error.status in (400, 401, 403, 409, 413):
                    raise
                log.warning("cannot register; trying again: %s", error)
                if self.stopping.wait(_pause(error, failures)):
                    break
        return False

    def _claim_forever(self) -> None:
        failures = 0
        free = ahead = 0
        found_none = False
        while not self.stopping.is_set():
            with self._changed:
                ended = len(self._attempts)
                while not self.stopping.is_set():
                    free, ahead = self.capacity - len(self._attempts), self._ahead()
                    # Without a free slot, ask again only when an attempt has ended.
                    if free > 0 or free + ahead > 0 and not (found_none and len(self._attempts) >= ended):
                        break
                    self._changed.wait(_AHEAD_SECONDS_MAX if self._ready else None)
                    self._return_late()
                executing = self._leases()
            if self.stopping.is_set():
                break
            body = {"countMax": min(free + ahead, 100), "waitSeconds": 30 if free > 0 else 0, "executing": executing}
            try:
                response = self.transport.request("POST", f"{self._path}/claims", body, timeout=60, attempts=1)
                claims = (response.json() or {"data": []})["data"]
                for claim in claims:
                    self._begin(claim)
                failures = 0
                found_none = not claims
            except Exception as error:
                failures += 1
                if not self._recover(error, "claim runs"):
                    self.stopping.wait(_pause(error, failures))

    def _ahead(self) -> int:
        return self.capacity if self._average_seconds < _SHORT_SECONDS else 0

    def _return_late(self, seconds: float = _AHEAD_SECONDS_MAX) -> None:
        while self._ready and time.monotonic() - self._ready[0][0] >= seconds:
            attempt = self._ready.popleft()[1]
            threading.Thread(target=self._end, args=(attempt, attempt.hand_back), daemon=True).start()

    def _recover(self, error: Exception, what: str) -> bool:
        """Registers again if the service does not know the worker; ends it if it may not work."""
        try:
            if isinstance(error, ApiError) and error.status == 404 and not self.stopping.is_set():
                log.warning("the service does not know this worker; registering again")
                return self._register()
            if isinstance(error, ApiError) and error.status in (401, 403):
                raise error
        except ExecutionServiceError as final:
            self._failure = final
            self.stop()
            return True
        if not self.stopping.is_set():
            log.warning("cannot %s; trying again: %s", what, error)
        return False

    def _begin(self, claim: Dict[str, Any]) -> None:
        attempt = Attempt(self, claim, time.monotonic() + self._lease_seconds)
        with self._changed:
            if attempt.key in self._attempts:
                return
            self._attempts[attempt.key] = attempt
            self._ready.append((time.monotonic(), attempt))
            self._has_ready.notify()

    def _execute_forever(self) -> None:
        while True:
            with self._has_ready:
                while not self._ready:
                    self._has_ready.wait()
                attempt = self._ready.popleft()[1]
            self._end(attempt, attempt.execute)

    def _end(self, attempt: Attempt, act: Callable[[], None]) -> None:
        key = attempt.key
        try:
            act()
        except LeaseLost:
            log.info("run %s: the lease of attempt %s is over", *key)
        except Exception as error:
            log.error("run %s: attempt %s cannot be reported: %s", *key, error, exc_info=not isinstance(error, ExecutionServiceError))
        finally:
            attempt.close()
            with self._changed:
                del self._attempts[key]
                self._changed.notify_all()

    def note_duration(self, seconds: float) -> None:
        with self._changed:
            self._average_seconds += (seconds - self._average_seconds) * _WEIGHT

    def _leases(self) -> List[Dict[str, Any]]:
        return [{"runId": run_id, "attempt": attempt} for run_id, attempt in self._attempts]

    def _renew_forever(self) -> None:
        while not self._closed.wait(self._until_renewal()):
            self._drop_ended()
            with self._changed:
                leases = self._leases()
            if not leases:
                continue
            sent_at, interval = time.monotonic(), self._lease_seconds / 3
            try:
                # The next renewal is the next try.
                path = f"{self._path}/leases"
                renewed = self.transport.request("POST", path, {"leases": leases}, attempts=1, timeout=interval).json()
            except Exception as error:
                self._recover(error, "renew leases")
                continue
            with self._changed:
                for each in [*renewed["extended"], *renewed["cancelled"]]:
                    extended = self._attempts.get((each["runId"], each["attempt"]))
                    if extended:
                        extended.lease_ends = sent_at + self._lease_seconds
            for why, each in [*(("cancelled", e) for e in renewed["cancelled"]), *(("lost", e) for e in renewed["lost"])]:
                with self._changed:
                    attempt = self._attempts.get((each["runId"], each["attempt"]))
                if attempt:
                    attempt.interrupt(why)

    def _until_renewal(self) -> float:
        """A third of the lease, or the time until the first lease ends."""
        with self._changed:
            ends = [attempt.lease_ends for attempt in self._attempts.values()]
        left = [end - time.monotonic() for end in ends]
        return min([self._lease_seconds / 3, *(seconds for seconds in left if seconds > 0)])

    def _drop_ended(self) -> None:
        """Interrupts attempts whose lease has ended without a renewal: another worker may execute their runs."""
        with self._changed:
            ended = [each for each in self._attempts.values() if each.lease_ends <= time.monotonic()]
        for attempt in ended:
            attempt.interrupt("lost")

    def has(self, workflow_id: str) -> bool:
        return workflow_id in self._workflows

    def time_limit(self, workflow_id: str) -> float:
        return float(self._workflows[workflow_id].get("timeLimitSeconds", 60))

    def acquire(self) -> AttemptProcess:
        """A process that has loaded the modules. :raises LoadError: if they cannot be loaded any more."""
        while True:
            with self._changed:
                process = self._idle.pop() if self._idle else None
            if process is None:
                process = AttemptProcess(self._sources)
                try:
                    process.load()
                except LoadError:
                    process.kill()
                    raise
            if process.is_alive:
                return process
            process.kill()

    def release(self, process: AttemptProcess, reusable: bool) -> None:
        with self._changed:
            if reusable and not self._closed.is_set():
                self._idle.append(process)
                return
        process.kill()

    def _drain(self) -> None:
        with self._changed:
            self._changed.notify_all()
            self._return_late(0)
            if self._attempts:
                log.info("stopping; %d runs may go on for %g seconds", len(self._attempts), self._grace_seconds)
            self._changed.wait_for(lambda: not self._attempts, self._grace_seconds)
            for attempt in self._attempts.values():
                attempt.interrupt("stopped")
            self._changed.wait_for(lambda: not self._attempts, self.abort_grace_seconds + 10)

    def _close(self) -> None:
        self._closed.set()
        self.stop()
        with self._changed:
            idle, self._idle = self._idle, []
            attempts = list(self._attempts.values())
        for process in [*idle, *(each.process for each in attempts if each.process)]:
            process.kill()
        try:
            self.transport.request("DELETE", self._path, attempts=2, timeout=5)
        except ExecutionServiceError as error:
            if not isinstance(error, ApiError) or error.status != 404:
                log.warning("cannot sign off; the runs go back when their leases end: %s", error)
        self.transport.close()


def _pause(error: Exception, failures: int) -> float:
    asked = error.retry_after if isinstance(error, ApiError) else None
    return backoff(failures) if asked is None else asked


class Attempt:
    """One attempt of a run: passes on what its process reports, and ends it when it has to end."""

    def __init__(self, worker: Worker, claim: Dict[str, Any], lease_ends: float) -> None:
        self.process: Optional[AttemptProcess] = None
        #: By the monotonic clock, unless a renewal is answered.
        self.lease_ends = lease_ends
        self.key: Tuple[str, int] = (claim["runId"], claim["attempt"])
        self._worker = worker
        self._claim = claim
        self._path = f"/v1/execution/runs/{claim['runId']}/attempts/{claim['attempt']}"
        self._events: List[Dict[str, Any]] = []
        self._event_bytes = 0
        self._position = 0
        self._flush_at = float("inf")
        self._interrupted: Optional[str] = None
        self._kill_at = float("inf")
        self._step: Optional[str] = None
        self._files = _Files(worker.transport, self._path, claim.get("files", []))
        self._is_over = threading.Event()
        self._wake_reader, self._wake_writer = multiprocessing.connection.Pipe(duplex=False)

    def interrupt(self, why: str) -> None:
        """Ends the attempt from outside: ``cancelled``, ``lost`` or ``stopped``. The first reason counts."""
        if why == "lost":
            self._is_over.set()
        try:
            self._wake_writer.send_bytes(why.encode())
        except OSError:
            pass  # It has just ended.

    def execute(self) -> None:
        workflow_id = self._claim["workflowId"]
        reusable = False
        try:
            if self._worker.stopping.is_set():
                return self.hand_back()
            if not self._worker.has(workflow_id):
                return self.hand_back(f"The worker has no workflow {workflow_id}.")
            try:
                self.process = self._worker.acquire()
            except LoadError as error:
                log.error("%s", error)
                return self.hand_back(str(error)[:1000])
            try:
                variables = self._files.insert_paths(self._claim["variableData"], self._is_over.wait)
            except _FileMissing as error:
                return self._finish({**_THREW, "error": {"name": "FileMissing", "message": str(error)}})
            names = ("workflowId", "runId", "number", "steps", "hasWaits")
            # A service of an earlier version knows neither.
            declared = {name: self._claim.get(name, {}) for name in ("accountSecrets", "settings")}
            start = {name: self._claim[name] for name in names}
            # Nothing of another run.
            for line in self.process.read_lines(all=True):
                log.info("a process without a run has written: %s", line)
            self.process.send({"type": "start", **start, **declared, "variableData": variables})
            started = time.monotonic()
            ended = self._follow(self.process)
            self._worker.note_duration(time.monotonic() - started)
            reusable = bool(ended.get("reusable"))
            self._finish(ended)
        finally:
            if self.process:
                self._worker.release(self.process, reusable)

    def close(self) -> None:
        self._files.remove()
        self._wake_reader.close()
        self._wake_writer.close()

    def _follow(self, process: AttemptProcess) -> Dict[str, Any]:
        """Passes on messages until the function has ended or the process is gone."""
        limit_at = time.monotonic() + float(self._claim["timeLimitSeconds"])
        while True:
            now = time.monotonic()
            if now >= self._kill_at:
                self._report_output(process, process.read_lines(all=True))
                process.kill()
                return {"type": "killed"}
            if self._interrupted is None and now >= limit_at:
                self._abort("timedOut")
            if now >= self._flush_at:
                self._flush()
            deadline = min(self._flush_at, self._kill_at, limit_at if self._interrupted is None else float("inf"))
            sources = [process.connection, self._wake_reader, *([process.output] if process.output else [])]
            ready = multiprocessing.connection.wait(sources, None if deadline == float("inf") else max(0, deadline - now))
            if process.output in ready:
                self._report_output(process, process.read_lines())
            if self._wake_reader in ready and self._interrupted is None:
                self._abort(self._wake_reader.recv_bytes().decode())
            elif self._wake_reader in ready:
                self._wake_reader.recv_bytes()
            if process.connection not in ready:
                continue
            try:
                message = self._files.with_ids(process.receive())
            except (EOFError, OSError, ValueError):
                self._report_output(process, process.read_lines(all=True))
                return {"type": "exited", "error": process.describe_end()}
            if message["type"] in ("returned", "threw", "left"):
                self._report_output(process, process.read_lines(all=True))
                return message
            self._on_message(process, message)

    def _report_output(self, process: AttemptProcess, lines: Sequence[str]) -> None:
        for line in map(self._files.line_with_ids, map(cut, lines)):
            self._on_message(process, {"type": "event", "event": {"type": "log", "level": "info", "message": line}})

    def _abort(self, why: str) -> None:
        self._interrupted = why
        self._kill_at = time.monotonic() + self._worker.abort_grace_seconds
        if self.process:
            self.process.send({"type": "abort", "reason": _REASONS[why]})

    def _on_message(self, process: AttemptProcess, message: Dict[str, Any]) -> None:
        if self._interrupted == "lost":
            return
        try:
            if message["type"] == "event":
                return self._add(message["event"])
            if message["type"] == "step":
                name = message["name"]
                self._call_with_events("PUT", f"/steps/{quote(name)}", {"value": message["value"]})
                self._step = None if self._step == name else self._step
                reply: Dict[str, Any] = {"type": "stored"}
            elif message["type"] == "artifact":
                self._flush()
                body = {"mediaType": message["mediaType"], "content": message["content"]}
                self._call("PUT", f"/artifacts/{quote(message['name'])}", body)
                reply = {"type": "stored"}
            else:
                body = {name: message[name] for name in ("waits", "names", "suspend")}
                reply = {**self._call_with_events("POST", "/suspend", body), "type": "waits"}
                if reply["suspended"]:
                    self._is_over.set()
        except ApiError as error:
            if error.status not in (400, 404, 413, 422):
                raise
            names = {"step": "StepRefused", "artifact": "ArtifactRefused"}
            reply = {"type": "refused", "name": names.get(message["type"], "WaitRefused"), "message": _explain(error)}
        except LeaseLost:
            return self._abort("lost")
        process.send(reply)

    def _add(self, event: Dict[str, Any]) -> None:
        if event["type"] == "step":
            self._step = event["name"] if event["state"] == "started" else self._step
        if not self._events:
            self._flush_at = time.monotonic() + _FLUSH_SECONDS
        self._events.append(event)
        self._event_bytes += len(dump_json(event))
        if len(self._events) >= _EVENTS_MAX or self._event_bytes >= _EVENT_BYTES_MAX:
            self._flush()

    def _flush(self) -> None:
        events, self._events = self._events, []
        self._event_bytes, self._flush_at = 0, float("inf")
        if events and not self._is_over.is_set():
            self._call("POST", "/events", {"position": self._position, "events": events})
            self._position += len(events)

    def _finish(self, ended: Dict[str, Any]) -> None:
        if self._interrupted == "lost":
            raise LeaseLost()
        if self._is_over.is_set():
            return  # It was suspended.
        if self._interrupted == "stopped" and ended["type"] not in ("returned", "threw"):
            self._flush()
            return self.hand_back()
        if self._interrupted in ("cancelled", "timedOut"):
            body: Dict[str, Any] = {"outcome": self._interrupted, "step": self._step}
        elif ended["type"] == "returned":
            body = {"outcome": "succeeded", "output": ended["output"]}
        elif ended["type"] == "threw":
            body = {"outcome": "failed", "reason": ended["reason"], "error": ended["error"]}
        else:
            error = ended.get("error") or {"name": "ProcessExit", "message": "The function has left its process."}
            body = {"outcome": "failed", "reason": "workflowExited", "error": {**error, "step": self._step}}
        try:
            self._call_with_events("POST", "/complete", body)
        except ApiError as error:
            if body["outcome"] != "succeeded" or error.status not in (400, 413):
                raise
            invalid = {"name": "OutputInvalid", "message": f"The output: {_explain(error)}"}
            self._call_with_events("POST", "/complete", {"outcome": "failed", "reason": "outputInvalid", "error": invalid})

    def hand_back(self, message: Optional[str] = None) -> None:
        self._call("POST", "/hand-back", {} if message is None else {"message": message})

    def _call_with_events(self, method: str, path: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """A report with the events before it, which are kept if the service refuses it."""
        if self._event_bytes > _BYTES_BEFORE_MAX:
            self._flush()
        if not self._events or self._is_over.is_set():
            return self._call(method, path, body)
        try:
            response = self._call(method, path, {**body, "events": {"position": self._position, "events": self._events}})
        except ApiError as error:
            if not any(location.startswith("/events") for location, _ in error.errors):
                raise
            log.error("run %s: the service refuses events, which are dropped: %s", self.key[0], _explain(error))
            self._events, self._event_bytes, self._flush_at = [], 0, float("inf")
            return self._call(method, path, body)
        self._position += len(self._events)
        self._events, self._event_bytes, self._flush_at = [], 0, float("inf")
        return response

    def _call(self, method: str, path: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """A report, repeated until the service has it. :raises LeaseLost: if another worker has the run."""
        try:
            # The lease ends long before these attempts do.
            response = self._worker.transport.request(method, self._path + path, body, attempts=50, sleep=self._is_over.wait)
        except ApiError as error:
            if error.status in (404, 409) and not path.startswith("/suspend") or error.status == 409:
                raise LeaseLost() from error
            raise
        return response.json() or {}


class _FileMissing(Exception):
    pass


class _Files:
    """The files of a run: written into a temporary directory before its attempt, and removed after it."""

    def __init__(self, transport: Transport, path: str, files: Sequence[Dict[str, Any]]) -> None:
        self._transport = transport
        self._path = path
        self._files = files
        self._directory: Optional[str] = None
        #: By path, as it stands in JSON.
        self._ids: Dict[str, str] = {}

    def insert_paths(self, variables: Any, sleep: Callable[[float], Any]) -> Any:
        """The variables with the paths of files in place of their ids."""
        if not self._files:
            return variables
        self._directory = tempfile.mkdtemp(prefix="execution-service-files-")
        inserted = copy.deepcopy(variables)
        for each in self._files:
            directory = os.path.join(self._directory, each["id"])
            path = os.path.join(directory, each["name"])
            if not os.path.exists(path):
                os.mkdir(directory, 0o700)
                self._download(each, path, sleep)
                os.chmod(path, 0o400)
            self._ids[json.dumps(path)[1:-1]] = each["id"]
            _insert(inserted, each["pointer"], path)
        return inserted

    def _download(self, file: Dict[str, Any], path: str, sleep: Callable[[float], Any]) -> None:
        for failures in range(1, 1_000_000):
            try:
                with self._transport.stream(f"{self._path}/files/{file['id']}", {}, 30) as response, open(path, "wb") as target:
                    shutil.copyfileobj(response, target, 1024 * 1024)
                if os.path.getsize(path) == file["bytes"]:
                    return
                error: Exception = ServiceUnreachable("the connection broke")
            except ApiError as refused:
                if refused.status == 404:
                    message = f"The file {file['id']}, which variableData{file['pointer']} names, no longer exists."
                    raise _FileMissing(message) from refused
                if refused.status == 409:
                    raise LeaseLost() from refused
                if refused.status not in TEMPORARY:
                    raise
                error = refused
            except (OSError, http.client.HTTPException, ServiceUnreachable) as broken:
                error = broken
            log.warning("cannot read a file; trying again: %s", error)
            if sleep(_pause(error, failures)):
                raise LeaseLost()

    def with_ids(self, message: Dict[str, Any]) -> Dict[str, Any]:
        """A message with the ids of files in place of their paths, which mean nothing after the attempt."""
        if not self._ids:
            return message
        replaced: Dict[str, Any] = json.loads(self._replace(json.dumps(message)))
        return replaced

    def line_with_ids(self, line: str) -> str:
        return str(json.loads(self._replace(json.dumps(line)))) if self._ids else line

    def _replace(self, text: str) -> str:
        for path, file_id in self._ids.items():
            text = text.replace(path, file_id)
        return text

    def remove(self) -> None:
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)


def _insert(value: Any, pointer: str, replacement: str) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in parents:
        value = value[int(part) if isinstance(value, list) else part]
    value[int(last) if isinstance(value, list) else last] = replacement


def _explain(error: ApiError) -> str:
    members = "; ".join(f"{location} {detail}" for location, detail in error.errors)
    return f"{error.detail} {members}".strip() or error.title
