"""The run that a workflow's function gets: its steps, waits and reports."""

from __future__ import annotations

import base64
import datetime
import json
import threading
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, TypeVar, Union, overload

from .errors import CalledRunFailed, Cancelled, Refused, RunError, Suspended, WaitTimedOut
from .schema import decode, encode, needs_hint, return_hint
from .workflow import Wait, Workflow

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Protocol

    P = ParamSpec("P")

    class Channel(Protocol):
        """Connects a run with its worker, or with a test."""

        def report(self, event: Dict[str, Any]) -> None: ...

        def ask(self, request: Dict[str, Any]) -> Dict[str, Any]: ...


T = TypeVar("T")
O = TypeVar("O")

_NAME_LENGTH_MAX = 200
_TEXT_LENGTH_MAX = 8192
_VALUE_BYTES_MAX = 1024 * 1024
_STAY_SECONDS = 2
_WAIT_SECONDS_MAX = 366 * 86_400
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".txt": "text/plain",
    ".webp": "image/webp",
    ".zip": "application/zip",
}


class Call(Generic[O]):
    """A run that :meth:`Run.start_call` has called."""

    def __init__(self, run: Run, name: str, output: Any) -> None:
        self._run = run
        self.name = name
        self._output = output

    def result(self) -> O:
        """Waits until the run has ended, and returns its output. :raises CalledRunFailed: if it has none."""
        outcome = self._run._await(self.name)
        if outcome["ok"]:
            value: O = decode(outcome["output"], self._output)
            return value
        raise CalledRunFailed(outcome["runId"], outcome["status"], RunError.from_json(outcome["error"]), self.name)


class Run:
    """One execution of a workflow."""

    def __init__(
        self,
        channel: Channel,
        *,
        id: str,
        attempt: int = 1,
        waits: Mapping[str, Wait[Any]] = {},
        results: Mapping[str, Any] = {},
        secrets: Mapping[str, str] = {},
        settings: Mapping[str, Any] = {},
    ) -> None:
        #: The run's id. With the name of a step, it makes an idempotency key for other services.
        self.id = id
        #: 1 for the first attempt.
        self.attempt = attempt
        #: The secrets that the workflow declares, by name. The service masks them in what the run reports.
        self.secrets: Mapping[str, str] = dict(secrets)
        #: The settings that the workflow declares, by name, of the declared types.
        self.settings: Mapping[str, Any] = dict(settings)
        #: Set when the attempt has to end: ``while not run.cancelled.wait(5): …``
        self.cancelled = threading.Event()
        self._channel = channel
        self._declared = waits
        self._results = dict(results)
        self._names: set[str] = set()
        self._reached: List[Dict[str, Any]] = []
        self._reason = ""
        self._is_suspended = False
        self._running: List[str] = []
        self.failed_step: Optional[str] = None
        self._failure: Optional[BaseException] = None
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)

    def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function and stores its result, which later attempts of the run reuse instead of calling it again.

        A step that was interrupted is called again. The result becomes JSON; the type hint of the function's result says
        which type it gets back.

        :param name: unique within the run, at most 200 characters.
        """
        self._begin(name)
        hint = return_hint(function)
        if name in self._results:
            self._channel.report({"type": "step", "name": name, "state": "reused"})
            reused: T = self._decode(self._results[name], hint)
            return reused
        self._channel.report({"type": "step", "name": name, "state": "started"})
        with self._lock:
            self._running.append(name)
        try:
            try:
                result = function(*args, **kwargs)
                if hint is None and needs_hint(result):
                    raise TypeError(
                        f'Step "{name}" returns {type(result).__name__}, which is not JSON: annotate what the function '
                        "returns, so that later attempts get the same type."
                    )
                value = _json(encode(result, hint), f'The result of step "{name}"')
            except Exception as error:
                self._channel.report({"type": "step", "name": name, "state": "failed"})
                # A step inside another one is closer to the cause.
                if error is not self._failure:
                    self._failure, self.failed_step = error, name
                raise
            self._ask({"type": "step", "name": name, "value": value})
        finally:
            with self._lock:
                self._running.remove(name)
                self._idle.notify_all()
        decoded: T = self._decode(value, hint)
        return decoded

    def sleep(
        self,
        name: str,
        duration: Union[datetime.timedelta, float, None] = None,
        *,
        until: Optional[datetime.datetime] = None,
    ) -> None:
        """Returns when the time has passed. A run that waits uses no process: the function is called again afterwards.

        :param duration: a timedelta, or seconds. At most 366 days.
        :param until: when the sleep ends, in place of a duration.
        """
        if (duration is None) == (until is None):
            raise TypeError("A sleep needs either a duration or `until`.")
        wait: Dict[str, Any] = {"kind": "sleep", "name": name}
        stay: Optional[float] = None
        if until is not None:
            if until.tzinfo is None:
                raise ValueError("`until` has no time zone: use datetime.now(timezone.utc) + …, for example.")
            moment = until.astimezone(datetime.timezone.utc)
            wait["until"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        else:
            wait["seconds"] = stay = _seconds(duration, "A sleep")
        self._begin(name)
        self._reach(wait)
        if stay is not None and stay <= _STAY_SECONDS and name not in self._results:
            # Shorter than it takes to leave the process and to come back.
            self._send_waits([name], suspend=False)
            self.cancelled.wait(stay)
        self._await(name)

    def wait_for(
        self,
        wait: Union[Wait[T], str],
        *,
        title: Optional[str] = None,
        timeout: Union[datetime.timedelta, float] = 7 * 86_400,
        show: Optional[Mapping[str, Any]] = None,
    ) -> T:
        """Returns the answer of a caller or a person. The first answer counts, also if it came before.

        :param wait: one that the workflow declares, or its name.
        :param title: what to decide in this run. :param timeout: a timedelta or seconds, at most 366 days.
        :param show: values to show to the person who answers.
        :raises WaitTimedOut: if no answer came in time.
        """
        name = wait.name if isinstance(wait, Wait) else wait
        declared = self._declared.get(name)
        if declared is None:
            raise TypeError(f'The workflow declares no wait "{name}": name it in `waits` of @workflow.')
        reached: Dict[str, Any] = {"kind": "answer", "name": name, "timeoutSeconds": _seconds(timeout, "`timeout`")}
        if title is not None:
            reached["title"] = str(title)
        if show is not None:
            reached["show"] = _json(encode(show), f'What wait "{name}" shows')
        self._begin(name)
        self._reach(reached)
        outcome = self._await(name)
        if not outcome["ok"]:
            raise WaitTimedOut(f'No answer to "{name}" came in time.')
        value: T = decode(outcome["value"], declared.type)
        return value

    @overload
    def call(self, name: str, workflow: Workflow[Any, O], variables: Any = None, **options: Any) -> O: ...

    @overload
    def call(self, name: str, workflow: str, variables: Any = None, **options: Any) -> Any: ...

    def call(self, name: str, workflow: Union[Workflow[Any, Any], str], variables: Any = None, **options: Any) -> Any:
        """Queues a run of a workflow, once however often the function is called, and returns its output.

        The parameters are those of :meth:`start_call`.

        :raises CalledRunFailed: if the run does not succeed. :raises Refused: if it cannot be queued.
        """
        return self.start_call(name, workflow, variables, **options).result()

    def start_call(
        self,
        name: str,
        workflow: Union[Workflow[Any, O], str],
        variables: Any = None,
        *,
        output: Any = Any,
        detached: bool = False,
        tags: Optional[Sequence[str]] = None,
        priority: Optional[int] = None,
        concurrency_key: Optional[str] = None,
        browser_context_id: Optional[str] = None,
    ) -> Call[O]:
        """Calls a workflow without waiting for its end, so that several runs execute at the same time.

        :param workflow: a workflow, or the id of one that the account sees.
        :param output: the type of the output, if the workflow is given by its id.
        :param detached: whether the called run goes on when this one is cancelled.
        """
        options = {
            "tags": tags and list(tags),
            "priority": priority,
            "concurrencyKey": concurrency_key,
            "browserContextId": browser_context_id,
        }
        is_workflow = isinstance(workflow, Workflow)
        self._begin(name)
        self._reach(
            {
                "kind": "run",
                "name": name,
                "workflowId": workflow.id if isinstance(workflow, Workflow) else workflow,
                "variableData": _json(encode({} if variables is None else variables), f'The variables of call "{name}"'),
                "detached": detached,
                "options": {key: value for key, value in options.items() if value is not None},
            }
        )
        return Call(self, name, workflow.output if isinstance(workflow, Workflow) and is_workflow else output)

    def log(self, message: object, level: str = "info") -> None:
        """Writes a line to the run's log. ``print`` and ``logging`` write there too.

        :param level: ``info``, ``warn`` or ``error``.
        """
        self._check()
        if level not in ("info", "warn", "error"):
            raise ValueError(f"The level of a log line is info, warn or error, not {level!r}.")
        self._channel.report({"type": "log", "level": level, "message": cut(str(message))})

    def progress(self, percent: float, message: Optional[str] = None) -> None:
        """Reports the progress of the run, from 0 to 100."""
        self._check()
        event: Dict[str, Any] = {"type": "progress", "percent": min(100.0, max(0.0, float(percent)))}
        self._channel.report(event if message is None else {**event, "message": cut(str(message))})

    def artifact(self, name: str, content: Union[bytes, str], *, media_type: Optional[str] = None) -> None:
        """Stores a file with the run. One of the same name is replaced.

        :param name: of letters, digits, dots, underscores and hyphens. :param content: at most 10 MiB.
        :param media_type: follows from the name's extension by default.
        """
        self._check()
        data = content.encode() if isinstance(content, str) else bytes(content)
        derived = _MEDIA_TYPES.get(PurePath(name).suffix.lower(), "application/octet-stream")
        encoded = base64.b64encode(data).decode()
        self._ask({"type": "artifact", "name": name, "mediaType": media_type or derived, "content": encoded})

    def abort(self, reason: str) -> None:
        """Lets the next call raise :class:`Cancelled`. Workers and tests call it."""
        self._reason = reason
        self.cancelled.set()

    def _check(self) -> None:
        if self._is_suspended:
            raise Suspended()
        if self.cancelled.is_set():
            raise Cancelled(self._reason)

    def _begin(self, name: str) -> None:
        self._check()
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_LENGTH_MAX or "\0" in name:
            raise ValueError(f"The name of a step or wait is a str of 1 to {_NAME_LENGTH_MAX} characters, not {name!r}.")
        with self._lock:
            if name in self._names:
                raise ValueError(f'Two steps or waits of this run are named "{name}". Each needs its own name.')
            self._names.add(name)

    def _decode(self, value: Any, hint: Any) -> Any:
        return value if hint is None else decode(value, hint)

    def _reach(self, wait: Dict[str, Any]) -> None:
        if wait["name"] not in self._results:
            with self._lock:
                self._reached.append(wait)

    def _await(self, name: str) -> Any:
        self._check()
        while name not in self._results:
            with self._lock:
                # A run is suspended only while no thread executes a step.
                while self._running:
                    self._idle.wait()
            self._send_waits([name], suspend=True)
        return self._results[name]

    def _send_waits(self, names: List[str], suspend: bool) -> None:
        with self._lock:
            reached, self._reached = self._reached, []
        reply = self._ask({"type": "waits", "waits": reached, "names": names, "suspend": suspend})
        if reply.get("suspended"):
            self._is_suspended = True
            raise Suspended()
        for each in reply.get("ended", ()):
            self._results[each["name"]] = each["outcome"]
        for each in reply.get("refused", ()):
            raise Refused(each["errorName"], each["message"])

    def _ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self._check()
        reply = self._channel.ask(request)
        self._check()
        if reply["type"] == "refused":
            raise Refused(reply["name"], reply["message"])
        return reply


def cut(text: str, length: int = _TEXT_LENGTH_MAX) -> str:
    # The service takes no null characters.
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= length else text[: length - 1] + "…"


def _json(value: Any, subject: str) -> Any:
    size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    if size > _VALUE_BYTES_MAX:
        raise ValueError(f"{subject} has {size} bytes as JSON; at most {_VALUE_BYTES_MAX} are allowed. Use an artifact.")
    return value


def _seconds(duration: Union[datetime.timedelta, float, None], subject: str) -> float:
    seconds = duration.total_seconds() if isinstance(duration, datetime.timedelta) else float(duration or 0)
    if 0 <= seconds <= _WAIT_SECONDS_MAX:
        return seconds
    raise ValueError(f"{subject} takes 0 seconds to 366 days.")
