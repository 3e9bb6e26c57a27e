"""The run that a workflow's function gets: its steps, waits and reports."""

from __future__ import annotations

import base64
import datetime
import math
import re
import threading
from pathlib import PurePath
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

from .errors import CalledRunFailed, Cancelled, Refused, RunError, Suspended, WaitTimedOut
from .hints import return_hint
from .values import decode, needs_hint, to_json
from .workflow import Wait, Workflow

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Protocol, Unpack

    P = ParamSpec("P")

    class Channel(Protocol):
        """Connects a run with its worker, or with a test."""

        def report(self, event: Dict[str, Any]) -> None: ...

        def ask(self, request: Dict[str, Any]) -> Dict[str, Any]: ...


V = TypeVar("V")
T = TypeVar("T")
O = TypeVar("O")

Duration = Union[datetime.timedelta, float]

STAY_SECONDS = 2
_NAME_LENGTH_MAX = 200
_TEXT_LENGTH_MAX = 8192
_WAIT_SECONDS_MAX = 366 * 86_400
_ARTIFACT_BYTES_MAX = 10 * 1024 * 1024
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


class CallOptions(TypedDict, total=False):
    """Options of a called run."""

    #: Whether the called run goes on when this one is cancelled.
    detached: bool
    tags: Optional[Sequence[str]]
    priority: Optional[int]
    concurrency_key: Optional[str]
    browser_context_id: Optional[str]


class Call(Generic[O]):
    """A run that :meth:`Run.start_call` has called."""

    def __init__(self, run: Run, name: str, output: Any) -> None:
        self._run = run
        self.name = name
        self._output = output

    def result(self) -> O:
        """Waits until the run has ended, and returns its output. :raises CalledRunFailed: if it has none."""
        value: O = output_of_call(self._run.await_outcome(self.name), self.name, self._output)
        return value


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
        has_waited: bool = False,
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
        self.failed_step: Optional[str] = None
        self.is_suspended = False
        #: Called, in another thread, when the attempt has to end.
        self.on_abort: Callable[[], None] = lambda: None
        self._channel = channel
        self._declared = waits
        self._results = dict(results)
        self._has_waited = has_waited
        #: Results of earlier parts that the code has not reached: until then, it repeats what they have done and reported.
        self._unreached: Set[str] = set(results) if has_waited else set()
        self._names: Set[str] = set()
        self._reached: List[Dict[str, Any]] = []
        self._reason = ""
        self._running: List[str] = []
        self._failure: Optional[BaseException] = None
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)

    def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function and stores its result, which later attempts of the run reuse instead of calling it again.

        A step that was interrupted is called again. The result becomes JSON; the type hint of the function's result says
        which type it gets back.

        :param name: unique within the run, at most 200 characters.
        """
        called = self.replace(name, function)
        hint = return_hint(called)
        if self.begin_step(name):
            reused: T = self.result_of(name, hint)
            return reused
        try:
            try:
                value = self.check_result(name, called(*args, **kwargs), hint)
            except Exception as error:
                self.fail_step(name, error)
                raise
            self.ask({"type": "step", "name": name, "value": value})
        finally:
            self.end_step(name)
        result: T = decode(value, Any if hint is None else hint)
        return result

    def sleep(self, name: str, duration: Optional[Duration] = None, *, until: Optional[datetime.datetime] = None) -> None:
        """Returns when the time has passed. A run that waits uses no process: the function is called again afterwards.

        :param duration: a timedelta, or seconds. At most 366 days.
        :param until: when the sleep ends, in place of a duration.
        """
        wait = sleep_request(name, duration, until)
        self.begin(name)
        self.reach(wait)
        if wait.get("seconds", STAY_SECONDS + 1) <= STAY_SECONDS and name not in self._results:
            # Shorter than it takes to leave the process and to come back.
            self._send_waits([name], suspend=False)
            self.cancelled.wait(wait["seconds"])
        self.await_outcome(name)

    def wait_for(
        self,
        wait: Union[Wait[T], str],
        *,
        title: Optional[str] = None,
        timeout: Duration = 7 * 86_400,
        show: Optional[Mapping[str, Any]] = None,
    ) -> T:
        """Returns the answer of a caller or a person. The first answer counts, also if it came before.

        :param wait: one that the workflow declares, or its name.
        :param title: what to decide in this run. :param timeout: a timedelta or seconds, at most 366 days.
        :param show: values to show to the person who answers.
        :raises WaitTimedOut: if no answer came in time.
        """
        declared = self.declared(wait)
        request = answer_request(declared.name, title, timeout, show)
        self.begin(declared.name)
        self.reach(request)
        answer: T = answer_of(self.await_outcome(declared.name), declared)
        return answer

    @overload
    def call(
        self, name: str, workflow: Workflow[None, O], variables: None = None, **options: Unpack[CallOptions]
    ) -> O: ...

    @overload
    def call(self, name: str, workflow: Workflow[V, O], variables: V, **options: Unpack[CallOptions]) -> O: ...

    @overload
    def call(
        self, name: str, workflow: str, variables: Any = None, *, output: Any = Any, **options: Unpack[CallOptions]
    ) -> Any: ...

    def call(
        self, name: str, workflow: Union[Workflow[Any, Any], str], variables: Any = None, *, output: Any = Any, **options: Any
    ) -> Any:
        """Queues a run of a workflow, once however often the function is called, and returns its output.

        The parameters are those of :meth:`start_call`.

        :raises CalledRunFailed: if the run does not succeed. :raises Refused: if it cannot be queued.
        """
        return self._start_call(name, workflow, variables, output, options).result()

    @overload
    def start_call(
        self, name: str, workflow: Workflow[None, O], variables: None = None, **options: Unpack[CallOptions]
    ) -> Call[O]: ...

    @overload
    def start_call(self, name: str, workflow: Workflow[V, O], variables: V, **options: Unpack[CallOptions]) -> Call[O]: ...

    @overload
    def start_call(
        self, name: str, workflow: str, variables: Any = None, *, output: Any = Any, **options: Unpack[CallOptions]
    ) -> Call[Any]: ...

    def start_call(
        self, name: str, workflow: Union[Workflow[Any, Any], str], variables: Any = None, *, output: Any = Any, **options: Any
    ) -> Call[Any]:
        """Calls a workflow without waiting for its end, so that several runs execute at the same time.

        :param workflow: a workflow, or the id of one that the account sees.
        :param variables: an object of the workflow's type; a dictionary if the workflow is given by its id.
        :param output: the type of the output, if the workflow is given by its id.
        :param options: those of :class:`CallOptions`.
        """
        return self._start_call(name, workflow, variables, output, options)

    def _start_call(self, name: str, workflow: Any, variables: Any, output: Any, options: Dict[str, Any]) -> Call[Any]:
        request = call_request(name, workflow, variables, options)
        self.begin(name)
        self.reach(request)
        return Call(self, name, workflow.output if isinstance(workflow, Workflow) else output)

    def log(self, message: object, level: str = "info") -> None:
        """Writes a line to the run's log. ``print`` and ``logging`` write there too.

        :param level: ``info``, ``warn`` or ``error``.
        """
        self.check()
        if level not in ("info", "warn", "error"):
            raise ValueError(f"The level of a log line is info, warn or error, not {level!r}.")
        self.report_line(level, str(message))

    def progress(self, percent: float, message: Optional[str] = None) -> None:
        """Reports the progress of the run, from 0 to 100."""
        self.check()
        if isinstance(percent, bool) or not isinstance(percent, (int, float)) or math.isnan(percent):
            raise TypeError(f"The progress of a run is a number from 0 to 100, not {percent!r}.")
        event: Dict[str, Any] = {"type": "progress", "percent": min(100.0, max(0.0, float(percent)))}
        self.report(event if message is None else {**event, "message": cut(str(message))})

    def artifact(self, name: str, content: Union[bytes, str], *, media_type: Optional[str] = None) -> None:
        """Stores a file with the run. One of the same name is replaced.

        :param name: of letters, digits, dots, underscores and hyphens. :param content: at most 10 MiB.
        :param media_type: follows from the name's extension by default.
        """
        self.check()
        request = artifact_request(name, content, media_type)
        if not self.is_repeating:
            self.ask(request)

    def abort(self, reason: str) -> None:
        """Lets the next call raise :class:`Cancelled`. Workers and tests call it."""
        self._reason = reason
        self.cancelled.set()
        self.on_abort()

    # For `AsyncRun`, workers and tests.

    @property
    def is_repeating(self) -> bool:
        """Whether the code repeats what an earlier part has done: its events have been reported."""
        return bool(self._unreached)

    @property
    def recorded(self) -> List[str]:
        """The names of the results of earlier attempts and parts, in their order."""
        return list(self._results)

    def report(self, event: Dict[str, Any]) -> None:
        if not self.is_repeating:
            self._channel.report(event)

    def report_line(self, level: str, text: str) -> None:
        self.report({"type": "log", "level": level, "message": cut(text)})

    def replace(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of a step, in whose place a test puts another."""
        return function

    def check(self) -> None:
        if self.is_suspended:
            raise Suspended()
        if self.cancelled.is_set():
            raise Cancelled(self._reason)

    def begin(self, name: str) -> None:
        self.check()
        check_name(name)
        with self._lock:
            if name in self._names:
                raise ValueError(f'Two steps or waits of this run are named "{name}". Each needs its own name.')
            self._names.add(name)
            self._unreached.discard(name)

    def begin_step(self, name: str) -> bool:
        """Returns whether an earlier attempt or part has its result. Otherwise, call `end_step`."""
        self.begin(name)
        if name in self._results:
            # Reuse after a wait is how each run goes on, and no news.
            if not self._has_waited:
                self.report({"type": "step", "name": name, "state": "reused"})
            return True
        self._unreached.clear()
        self.report({"type": "step", "name": name, "state": "started"})
        with self._lock:
            self._running.append(name)
        return False

    def check_result(self, name: str, result: Any, hint: Any) -> Any:
        """The result of a step as JSON."""
        if hint is None and needs_hint(result):
            raise TypeError(
                f'Step "{name}" returns {type(result).__name__}, which is not JSON: annotate what the function '
                "returns, so that later attempts get the same type."
            )
        return to_json(result, f'The result of step "{name}"')

    def fail_step(self, name: str, error: BaseException) -> None:
        self.report({"type": "step", "name": name, "state": "failed"})
        # A step inside another one is closer to the cause.
        if error is not self._failure:
            self._failure, self.failed_step = error, name

    def end_step(self, name: str) -> None:
        with self._lock:
            self._running.remove(name)
            self._idle.notify_all()

    def result_of(self, name: str, hint: Any = None) -> Any:
        return decode(self._results[name], Any if hint is None else hint)

    def has_result(self, name: str) -> bool:
        return name in self._results

    def record(self, name: str, value: Any) -> Any:
        """The value as JSON, or the one that an earlier attempt or part has recorded."""
        self.begin(name)
        if name not in self._results:
            self.ask({"type": "step", "name": name, "value": value})
            self._results[name] = value
        return self._results[name]

    def declared(self, wait: Union[Wait[T], str]) -> Wait[T]:
        name = wait.name if isinstance(wait, Wait) else wait
        declared: Optional[Wait[T]] = self._declared.get(name) if isinstance(name, str) else None
        if declared is None:
            raise TypeError(f"The workflow declares no wait {name!r}: name it in `waits` of @workflow.")
        return declared

    def reach(self, wait: Dict[str, Any]) -> None:
        if wait["name"] not in self._results:
            with self._lock:
                self._reached.append(wait)

    def take_reached(self) -> List[Dict[str, Any]]:
        with self._lock:
            reached, self._reached = self._reached, []
        return reached

    def await_outcome(self, name: str) -> Any:
        self.check()
        while name not in self._results:
            with self._lock:
                # A run is suspended only while no thread executes a step.
                while self._running:
                    self._idle.wait()
            self._send_waits([name], suspend=True)
        return self._results[name]

    def _send_waits(self, names: List[str], suspend: bool) -> None:
        reply = self.ask({"type": "waits", "waits": self.take_reached(), "names": names, "suspend": suspend})
        if reply.get("suspended"):
            self.is_suspended = True
            raise Suspended()
        for each in reply.get("ended", ()):
            self._results[each["name"]] = each["outcome"]
        for each in reply.get("refused", ()):
            raise Refused(each["errorName"], each["message"])

    def ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.check()
        reply = self._channel.ask(request)
        self.check()
        if reply["type"] == "refused":
            raise Refused(reply["name"], reply["message"])
        return reply


# What authors pass, as the service gets it.


def check_name(name: Any) -> None:
    is_name = isinstance(name, str) and 0 < len(name) <= _NAME_LENGTH_MAX and not re.search("[\0\ud800-\udfff]", name)
    if not is_name:
        raise ValueError(
            f"The name of a step or wait is a str of 1 to {_NAME_LENGTH_MAX} characters, without U+0000 and halves of "
            f"surrogate pairs, not {name!r}."
        )


def sleep_request(name: str, duration: Optional[Duration], until: Optional[datetime.datetime]) -> Dict[str, Any]:
    check_name(name)
    if (duration is None) == (until is None):
        raise TypeError(f'Sleep "{name}" needs either a duration or `until`.')
    if until is None:
        return {"kind": "sleep", "name": name, "seconds": _seconds(duration, f'The duration of sleep "{name}"')}
    if not isinstance(until, datetime.datetime):
        raise TypeError(f'`until` of sleep "{name}" is a datetime with a time zone, not {until!r}.')
    if until.tzinfo is None:
        raise ValueError(f'`until` of sleep "{name}" has no time zone: use datetime.now(timezone.utc) + …, for example.')
    moment = until.astimezone(datetime.timezone.utc)
    if (moment - datetime.datetime.now(datetime.timezone.utc)).total_seconds() > _WAIT_SECONDS_MAX:
        raise ValueError(f'`until` of sleep "{name}" is more than 366 days away.')
    return {"kind": "sleep", "name": name, "until": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def answer_request(
    name: str, title: Optional[str], timeout: Duration, show: Optional[Mapping[str, Any]]
) -> Dict[str, Any]:
    check_name(name)
    seconds = _seconds(timeout, f'`timeout` of wait "{name}"')
    if seconds == 0:
        raise ValueError(f'`timeout` of wait "{name}" is 0: an answer needs a time to come.')
    reached: Dict[str, Any] = {"kind": "answer", "name": name, "timeoutSeconds": seconds}
    if title is not None:
        if not isinstance(title, str) or not title:
            raise TypeError(f'`title` of wait "{name}" is a str of at least one character, not {title!r}.')
        reached["title"] = cut(title)
    if show is not None:
        shown = to_json(show, f'What wait "{name}" shows')
        if not isinstance(shown, dict):
            raise TypeError(f'`show` of wait "{name}" is a dictionary or a dataclass, not {show!r}.')
        reached["show"] = shown
    return reached


def call_request(name: str, workflow: Any, variables: Any, options: Mapping[str, Any]) -> Dict[str, Any]:
    check_name(name)
    workflow_id = workflow.id if isinstance(workflow, Workflow) else workflow
    if not isinstance(workflow_id, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", workflow_id):
        raise TypeError(f'Call "{name}" names a workflow, or the id of one, not {workflow_id!r}.')
    unknown = set(options) - set(CallOptions.__annotations__)
    if unknown:
        raise TypeError(f'Call "{name}" has no option `{sorted(unknown)[0]}`: it has {", ".join(CallOptions.__annotations__)}.')
    written = to_json({} if variables is None else variables, f'The variables of call "{name}"')
    if not isinstance(written, dict):
        raise TypeError(f'The variables of call "{name}" are a dictionary or a dataclass, not {variables!r}.')
    given = {
        "tags": _tags(options.get("tags"), name),
        "priority": _priority(options.get("priority"), name),
        "concurrencyKey": _key(options.get("concurrency_key"), name),
        "browserContextId": options.get("browser_context_id"),
    }
    return {
        "kind": "run",
        "name": name,
        "workflowId": workflow_id,
        "variableData": written,
        "detached": bool(options.get("detached")),
        "options": {key: value for key, value in given.items() if value is not None},
    }


_TAG_CHARACTERS = "letters, digits and . _ : / @ = -"


def _tags(tags: Any, name: str) -> Optional[List[str]]:
    if tags is None or not isinstance(tags, str) and len(tags) == 0:
        return None
    if isinstance(tags, str) or not all(isinstance(each, str) and re.fullmatch(r"[A-Za-z0-9._:/@=-]{1,64}", each) for each in tags):
        raise ValueError(f'`tags` of call "{name}" is a list of texts of 1 to 64 {_TAG_CHARACTERS}, not {tags!r}.')
    if len(tags) > 10:
        raise ValueError(f'`tags` of call "{name}" has {len(tags)} tags; a run has at most 10.')
    return list(tags)


def _priority(priority: Any, name: str) -> Optional[int]:
    if priority is not None and (type(priority) is not int or not -10 <= priority <= 10):
        raise ValueError(f'`priority` of call "{name}" is an int from -10 to 10, not {priority!r}.')
    return priority


def _key(key: Any, name: str) -> Optional[str]:
    if key is not None and not (isinstance(key, str) and re.fullmatch(r"[A-Za-z0-9._:/@=-]{1,128}", key)):
        raise ValueError(f'`concurrency_key` of call "{name}" is a text of 1 to 128 {_TAG_CHARACTERS}, not {key!r}.')
    return key


def artifact_request(name: Any, content: Any, media_type: Optional[str]) -> Dict[str, Any]:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise ValueError(f"The name of an artifact is 1 to 100 letters, digits, dots, underscores and hyphens, not {name!r}.")
    if not isinstance(content, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"The content of artifact {name} is bytes or str, not {type(content).__name__}.")
    data = content.encode() if isinstance(content, str) else bytes(content)
    if len(data) > _ARTIFACT_BYTES_MAX:
        raise ValueError(f"The content of artifact {name} has {len(data)} bytes; at most {_ARTIFACT_BYTES_MAX} are allowed.")
    derived = _MEDIA_TYPES.get(PurePath(name).suffix.lower(), "application/octet-stream")
    encoded = base64.b64encode(data).decode()
    return {"type": "artifact", "name": name, "mediaType": media_type or derived, "content": encoded}


def _seconds(duration: Any, subject: str) -> float:
    if isinstance(duration, bool) or not isinstance(duration, (datetime.timedelta, int, float)):
        raise TypeError(f"{subject} is a timedelta, or a number of seconds, not {duration!r}: timedelta(hours=1) or 3600.")
    seconds = duration.total_seconds() if isinstance(duration, datetime.timedelta) else float(duration)
    if 0 <= seconds <= _WAIT_SECONDS_MAX:
        return seconds
    raise ValueError(f"{subject} is 0 seconds to 366 days, not {duration!r}.")


# What the service returns, as authors get it.


def answer_of(outcome: Any, declared: Wait[Any]) -> Any:
    if not outcome["ok"]:
        raise WaitTimedOut(f'No answer to "{declared.name}" came in time.')
    return decode(outcome["value"], declared.type)


def output_of_call(outcome: Any, name: str, output: Any) -> Any:
    if outcome["ok"]:
        return decode(outcome["output"], output)
    raise CalledRunFailed(outcome["runId"], outcome["status"], RunError.from_json(outcome["error"]), name)


def cut(text: str, length: int = _TEXT_LENGTH_MAX) -> str:
    # The service takes no null characters.
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= length else text[: length - 1] + "…"
