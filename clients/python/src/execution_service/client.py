"""The client for callers: queue runs, wait for them, follow them, answer their waits."""

from __future__ import annotations

import dataclasses
import json
import os
import time
import urllib.parse
import uuid
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Generic,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Type,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

from .errors import ApiError, RunError, RunFailed, ServiceUnreachable
from .http import TEMPORARY, Transport, backoff, quote
from .schema import decode, encode
from .workflow import Wait, Workflow

if TYPE_CHECKING:
    # Type checkers know it without the package.
    from typing_extensions import Unpack

O = TypeVar("O")

_FINAL = frozenset(("succeeded", "failed", "timedOut", "cancelled", "expired"))


class QueueOptions(TypedDict, total=False):
    """Options of :meth:`Client.queue`."""

    tags: Sequence[str]
    priority: Optional[int]
    delay_seconds: Optional[int]
    expires_in_seconds: Optional[int]
    concurrency_key: Optional[str]
    browser_context_id: Optional[str]
    persist_context: Optional[str]
    idempotency_key: Optional[str]
    wait_seconds: int


@dataclasses.dataclass(frozen=True)
class RunInfo(Generic[O]):
    """A run as a caller sees it."""

    id: str
    workflow_id: str
    workflow_version: str
    #: ``queued``, ``running``, ``succeeded``, ``failed``, ``timedOut``, ``cancelled`` or ``expired``.
    status: str
    reason: Optional[str]
    error: Optional[RunError]
    #: Every member of the response.
    raw: Mapping[str, Any] = dataclasses.field(repr=False)
    _output: Any = dataclasses.field(repr=False, default=Any)

    @property
    def is_finished(self) -> bool:
        return self.status in _FINAL

    @property
    def output(self) -> O:
        """What the workflow has returned. :raises RunFailed: if the run has not succeeded."""
        if self.status != "succeeded":
            raise RunFailed(self.id, self.status, self.error)
        value: O = decode(self.raw["output"], self._output)
        return value


class Client:
    """Calls the Execution API with one API key. Threads may share it.

    :param api_key: ``API_KEY`` of the environment by default.
    :param timeout: seconds for each attempt of a request.
    :param retries: how often a request is repeated that has failed for a temporary reason.
    """

    def __init__(self, url: str, api_key: Optional[str] = None, *, timeout: float = 30, retries: int = 3) -> None:
        self._transport = Transport(url, os.environ.get("API_KEY", "") if api_key is None else api_key, timeout)
        self._retries = retries
        self._timeout = timeout

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    @overload
    def queue(
        self, workflow: Workflow[Any, O], variables: Any = None, **options: Unpack[QueueOptions]
    ) -> RunInfo[O]: ...

    @overload
    def queue(
        self, workflow: str, variables: Any = None, *, output: Type[O], **options: Unpack[QueueOptions]
    ) -> RunInfo[O]: ...

    @overload
    def queue(self, workflow: str, variables: Any = None, **options: Unpack[QueueOptions]) -> RunInfo[Any]: ...

    def queue(
        self,
        workflow: Union[Workflow[Any, Any], str],
        variables: Any = None,
        *,
        output: Any = Any,
        tags: Sequence[str] = (),
        priority: Optional[int] = None,
        delay_seconds: Optional[int] = None,
        expires_in_seconds: Optional[int] = None,
        concurrency_key: Optional[str] = None,
        browser_context_id: Optional[str] = None,
        persist_context: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        wait_seconds: int = 0,
    ) -> RunInfo[Any]:
        """Queues a run.

        :param workflow: a workflow, or its id. :param variables: a dictionary, or an object of the type that it takes.
        :param output: the type of the output, if the workflow is given by its id.
        :param idempotency_key: queues one run, however often the call is repeated with this key. A random one by default.
        :param wait_seconds: for how long the response may wait for the end of the run, at most 30.
        """
        workflow_id = workflow.id if isinstance(workflow, Workflow) else workflow
        query = {
            "tag": list(tags),
            "priority": priority,
            "delaySeconds": delay_seconds,
            "expiresInSeconds": expires_in_seconds,
            "concurrencyKey": concurrency_key,
            "browserContextId": browser_context_id,
            "persistContext": persist_context,
        }
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        if wait_seconds:
            headers["Prefer"] = f"wait={wait_seconds}"
        body = {"variableData": encode({} if variables is None else variables)}
        path = f"/v1/execution/queue-remote/{quote(workflow_id)}{_query(query)}"
        run = self._request("PUT", path, body, headers, self._timeout + wait_seconds)
        return _run_info(run, workflow.output if isinstance(workflow, Workflow) else output)

    @overload
    def run(
        self,
        workflow: Workflow[Any, O],
        variables: Any = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> O: ...

    @overload
    def run(
        self,
        workflow: str,
        variables: Any = None,
        *,
        output: Type[O],
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> O: ...

    @overload
    def run(
        self,
        workflow: str,
        variables: Any = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> Any: ...

    def run(
        self,
        workflow: Union[Workflow[Any, Any], str],
        variables: Any = None,
        *,
        timeout: Optional[float] = None,
        **options: Any,
    ) -> Any:
        """Queues a run, waits for its end and returns its output.

        :param options: those of :meth:`queue`.
        :raises RunFailed: if it does not succeed. :raises TimeoutError: after ``timeout`` seconds; the run continues.
        """
        started = time.monotonic()
        wait = 30 if timeout is None else max(0, min(30, int(timeout)))
        options.setdefault("wait_seconds", wait)
        run: RunInfo[Any] = self.queue(workflow, variables, **options)
        if not run.is_finished:
            run = self.wait(run, timeout=None if timeout is None else timeout - (time.monotonic() - started))
        return run.output

    def get(self, run: Union[RunInfo[O], str], *, output: Any = Any) -> RunInfo[O]:
        """Reads a run. :param output: the type of the output, if the run is given by its id."""
        run_id, output = _id_and_output(run, output)
        return _run_info(self._request("GET", f"/v1/execution/runs/{quote(run_id)}"), output)

    def wait(self, run: Union[RunInfo[O], str], *, timeout: Optional[float] = None, output: Any = Any) -> RunInfo[O]:
        """Returns the run when it has ended, also if it has failed. :raises TimeoutError: after ``timeout`` seconds."""
        run_id, output = _id_and_output(run, output)
        deadline = None if timeout is None else time.monotonic() + timeout
        for _ in self._events(run_id, 0, deadline):
            pass
        return self.get(run_id, output=output)

    def follow(self, run: Union[RunInfo[Any], str], *, after: int = 0) -> Iterator[Dict[str, Any]]:
        """The events of a run: those so far, then each new one, until it has ended. Broken connections are continued.

        :param after: the ``sequence`` of the last event that was received before.
        """
        return self._events(_id_and_output(run, Any)[0], after, None)

    def list(self, **filters: Any) -> Iterator[RunInfo[Any]]:
        """Runs, the newest first. Filters are those of ``listRuns`` in snake_case, such as ``status`` and ``workflow_id``."""
        for run in self._pages("/v1/execution/runs", {_camel(name): value for name, value in filters.items()}):
            yield _run_info(run, Any)

    def cancel(self, run: Union[RunInfo[O], str]) -> RunInfo[O]:
        """Cancels a run. One that runs ends a little later."""
        run_id, output = _id_and_output(run, Any)
        return _run_info(self._request("POST", f"/v1/execution/runs/{quote(run_id)}/cancel"), output)

    def answer(self, run: Union[RunInfo[Any], str], wait: Union[Wait[Any], str], value: Any) -> Dict[str, Any]:
        """Answers a wait of a run, also before the run has reached it. :raises ApiError: 409 if it has another answer."""
        name = wait.name if isinstance(wait, Wait) else wait
        path = f"/v1/execution/runs/{quote(_id_and_output(run, Any)[0])}/waits/{quote(name)}"
        answered: Dict[str, Any] = self._request("PUT", path, {"value": encode(value)})
        return answered

    def waits(self, run: Union[RunInfo[Any], str]) -> List[Dict[str, Any]]:
        """What a run waits for, or has waited for."""
        return list(self._pages(f"/v1/execution/runs/{quote(_id_and_output(run, Any)[0])}/waits", {}))

    def artifact(self, run: Union[RunInfo[Any], str], name: str) -> bytes:
        """The content of a file that a run has stored."""
        path = f"/v1/execution/runs/{quote(_id_and_output(run, Any)[0])}/artifacts/{quote(name)}"
        return self._transport.request("GET", path, attempts=1 + self._retries).body

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] = {},
        timeout: Optional[float] = None,
    ) -> Any:
        attempts = 1 + self._retries
        return self._transport.request(method, path, body, headers=headers, timeout=timeout, attempts=attempts).json()

    def _pages(self, path: str, query: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        cursor = query.pop("cursor", None)
        while True:
            page = self._request("GET", path + _query({**query, "cursor": cursor}))
            yield from page["data"]
            if page["nextCursor"] is None or page["nextCursor"] == cursor:
                return
            cursor = page["nextCursor"]

    def _events(self, run_id: str, after: int, deadline: Optional[float]) -> Iterator[Dict[str, Any]]:
        failures = 0
        path = f"/v1/execution/runs/{quote(run_id)}/events"
        while True:
            # The service sends a comment every 15 seconds.
            left = 45.0 if deadline is None else min(45.0, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"Run {run_id} has not ended in time. It continues.")
            try:
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(after)} if after else {})}
                with self._transport.stream(path, headers, left) as response:
                    if response.status == 204:
                        return
                    for line in response:
                        if line.startswith(b"data: "):
                            event = json.loads(line[len(b"data: ") :])
                            after, failures = event["sequence"], 0
                            yield event
                        elif deadline is not None and time.monotonic() >= deadline:
                            break
                # The stream ends after the last event: the next response is a 204.
            except (ApiError, ServiceUnreachable, OSError) as error:
                if isinstance(error, ApiError) and error.status not in TEMPORARY:
                    raise
                failures += 1
                if failures > 10:
                    raise
                if deadline is None or time.monotonic() < deadline:
                    asked = error.retry_after if isinstance(error, ApiError) else None
                    time.sleep(backoff(failures) if asked is None else asked)


def _run_info(run: Dict[str, Any], output: Any) -> RunInfo[Any]:
    error = RunError.from_json(run["error"])
    return RunInfo(run["id"], run["workflowId"], run["workflowVersion"], run["status"], run["reason"], error, run, output)


def _id_and_output(run: Union[RunInfo[Any], str], output: Any) -> Any:
    return (run, output) if isinstance(run, str) else (run.id, run._output)


def _query(values: Mapping[str, Any]) -> str:
    given = {name: value for name, value in values.items() if value is not None and value != []}
    return "?" + urllib.parse.urlencode(given, doseq=True) if given else ""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
