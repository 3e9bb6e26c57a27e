"""Runs workflows in tests, without service and without waiting."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime
import io
import json
import logging
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterator, List, Mapping, Optional, TypeVar, Union, overload

from .error_description import describe_error
from .errors import NonRetryableError
from .fake_clock import FakeClock, RealClock
from .process import has_left
from .run import Run
from .schema import to_schema
from .validation import target_of, validate
from .values import decode, encode
from .workflow import DEFAULT_VALUES, Workflow, decode_settings

if TYPE_CHECKING:
    from typing_extensions import Literal, TypedDict, Unpack

    class TestOptions(TypedDict, total=False):
        steps: Mapping[str, Any]
        answers: Mapping[str, Any]
        calls: Mapping[str, Any]
        secrets: Mapping[str, str]
        settings: Mapping[str, Any]
        clock: Union[Literal["real", "fake"], datetime.datetime]
        cancel_after_events: Optional[int]

V = TypeVar("V")
O = TypeVar("O")

_WAITED_MAX = 10_000


@dataclasses.dataclass(frozen=True)
class After:
    """An answer or an output that comes after this time of waiting."""

    seconds: float
    value: Any


def after(duration: Union[datetime.timedelta, float], value: Any) -> After:
    seconds = duration.total_seconds() if isinstance(duration, datetime.timedelta) else float(duration)
    return After(seconds, value)


@dataclasses.dataclass
class TestRun(Generic[O]):
    """What a run in a test did."""

    #: ``succeeded``, ``failed`` or ``cancelled``.
    status: str = "failed"
    _output: Any = None
    #: What the function of the last attempt has raised.
    error: Optional[BaseException] = None
    attempts: int = 0
    #: The lines of the log, with secrets masked.
    logs: List[str] = dataclasses.field(default_factory=list)
    #: The results of the steps, by name.
    steps: Dict[str, Any] = dataclasses.field(default_factory=dict)
    events: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    artifacts: Dict[str, bytes] = dataclasses.field(default_factory=dict)
    #: The waits in the order of their ends: ``name``, ``kind``, ``seconds``, ``outcome``.
    waits: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    # Pytest must not collect it.
    __test__ = False

    @property
    def output(self) -> O:
        """What the workflow has returned. Raises its error if it has failed."""
        if self.error is not None:
            raise self.error
        value: O = self._output
        return value


@overload
def run_workflow(workflow: Workflow[None, O], variables: None = None, **options: Unpack[TestOptions]) -> TestRun[O]: ...


@overload
def run_workflow(
    workflow: Workflow[V, O], variables: Union[V, Mapping[str, Any]], **options: Unpack[TestOptions]
) -> TestRun[O]: ...


def run_workflow(
    workflow: Workflow[Any, Any],
    variables: Any = None,
    *,
    steps: Mapping[str, Any] = {},
    answers: Mapping[str, Any] = {},
    calls: Mapping[str, Any] = {},
    secrets: Mapping[str, str] = {},
    settings: Mapping[str, Any] = {},
    clock: Union[Literal["real", "fake"], datetime.datetime] = "real",
    cancel_after_events: Optional[int] = None,
) -> TestRun[Any]:
    """Runs a workflow as a worker does: with retries, and by calling its function again after each wait.

    No wait takes real time.

    :param variables: an object of the workflow's type, or a dictionary.
    :param steps: by name, what steps return in place of calling their functions; an exception is raised.
    :param answers: by the name of the wait: the answer, a function that returns it, or ``None`` if none comes in time.
        ``after(seconds, answer)`` lets it come later.
    :param calls: by the id of the called workflow: its output, or a function of the variables that returns it or raises.
    :param secrets: the secrets that the workflow declares, by name. They are masked in the result.
    :param settings: the settings that the workflow declares, by name.
    :param clock: with ``fake`` or a time to begin with, the time of ``datetime`` and ``time`` stands still, and moves on by
        each wait and each ``time.sleep``.
    :param cancel_after_events: cancels the run when it has reported this many events.
    """
    given = encode({} if variables is None else variables)
    schema = to_schema(workflow.variables)
    validate(given, schema, "/variables")
    declared = _check_declared(workflow, secrets, settings)
    time = RealClock() if clock == "real" else FakeClock(None if clock == "fake" else clock)
    test = _Test(workflow, _fill_defaults(given, schema), steps, answers, calls, declared, time, cancel_after_events)
    with test.capture(), time.installed():
        test.execute()
    return test.result


def _check_declared(workflow: Workflow[Any, Any], secrets: Mapping[str, str], settings: Mapping[str, Any]) -> Dict[str, Any]:
    for kind, given, names in (("secret", secrets, workflow.secrets), ("setting", settings, list(workflow.settings))):
        missing = [name for name in names if name not in given]
        if missing:
            raise LookupError(f"The workflow declares the {kind} {missing[0]}, which `{kind}s` does not have: its runs would wait.")
        other = [name for name in given if name not in names]
        if other:
            raise LookupError(f"The workflow does not declare the {kind} {other[0]}.")
    encoded = {name: encode(value) for name, value in settings.items()}
    for name, value in encoded.items():
        validate(value, to_schema(workflow.settings[name]), f"/settings/{name}")
    return {"secrets": dict(secrets), "settings": decode_settings(workflow, encoded)}


class _Test:
    """The channel of a run in a test."""

    def __init__(
        self,
        workflow: Workflow[Any, Any],
        variables: Any,
        steps: Mapping[str, Any],
        answers: Mapping[str, Any],
        calls: Mapping[str, Any],
        declared: Mapping[str, Any],
        clock: RealClock,
        cancel_after_events: Optional[int],
    ) -> None:
        self.result: TestRun[Any] = TestRun()
        self._workflow, self._variables = workflow, variables
        self._steps, self._answers, self._calls = steps, answers, calls
        self._cancel_after = cancel_after_events
        self._account = declared
        known = [*_secrets(variables, to_schema(workflow.variables)), *declared["secrets"].values()]
        self._secrets = sorted(known, key=len, reverse=True)
        #: The results of steps and waits.
        self._recorded: Dict[str, Any] = {}
        self._open: Dict[str, Dict[str, Any]] = {}
        self._clock = clock
        self._now = 0.0
        self._run: Optional[Run] = None

    def execute(self) -> None:
        result, workflow = self.result, self._workflow
        run_id = str(uuid.uuid4())
        for attempt in range(1, workflow.retry.max_attempts + 1):
            result.attempts = attempt
            for _ in range(_WAITED_MAX):
                run = _TestedRun(self, self._steps, run_id, attempt, workflow, self._recorded, self._account)
                self._run = run
                ended = self._call(run)
                if ended == "suspended":
                    self._skip()
                    continue
                result.status = ended
                break
            if result.status != "failed" or isinstance(result.error, NonRetryableError):
                return

    def _call(self, run: Run) -> str:
        workflow, result = self._workflow, self.result
        try:
            output = workflow.execute(run, self._variables)
            if run.is_suspended:
                return "suspended"
            if workflow.output is not Any:
                validate(output, to_schema(workflow.output, closed=False, serialized=True), "/output")
            result._output, result.error = decode(output, workflow.output), None
            return "succeeded"
        except BaseException as error:
            if run.is_suspended:
                return "suspended"
            result.error = error
            if run.cancelled.is_set() and has_left(error, run):
                return "cancelled"
            if isinstance(error, (Exception, SystemExit)):
                return "failed"
            raise

    def report(self, event: Dict[str, Any]) -> None:
        masked = json.loads(self._mask(json.dumps(event, ensure_ascii=False)))
        self.result.events.append(masked)
        if event["type"] == "log":
            self.result.logs.append(masked["message"])
        if len(self.result.events) == self._cancel_after and self._run:
            self._run.abort("The run was cancelled.")

    def report_line(self, level: str, line: str) -> None:
        if self._run:
            self._run.report_line(level, line)

    def _mask(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "********")
        return text

    def ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        if request["type"] == "step":
            self._recorded[request["name"]] = request["value"]
            if request["name"] != DEFAULT_VALUES:
                self.result.steps[request["name"]] = request["value"]
        elif request["type"] == "artifact":
            self.result.artifacts[request["name"]] = base64.b64decode(request["content"])
        else:
            for wait in request["waits"]:
                self._open.setdefault(wait["name"], self._reach(wait))
            if request["suspend"]:
                self._awaited = request["names"]
                return {"type": "waits", "suspended": True, "ended": [], "refused": []}
        return {"type": "stored"}

    def _reach(self, wait: Dict[str, Any]) -> Dict[str, Any]:
        """The wait with its outcome and the time of its end."""
        name, seconds = wait["name"], 0.0
        if wait["kind"] == "sleep":
            until = wait.get("until")
            seconds = float(wait.get("seconds", 0))
            if until:
                left = decode(until, datetime.datetime) - self._clock.now()
                seconds = max(0.0, left.total_seconds())
            outcome: Any = None
        elif wait["kind"] == "answer":
            if name not in self._answers:
                raise LookupError(f'The run waits for the answer "{name}", which `answers` does not have.')
            answer, seconds = _resolve(self._answers[name])
            if answer is None or seconds > wait["timeoutSeconds"]:
                outcome, seconds = {"ok": False}, wait["timeoutSeconds"]
            else:
                validate(answer, to_schema(self._workflow.waits[name].type), f"/answers/{name}")
                outcome = {"ok": True, "value": answer}
        else:
            outcome, seconds = self._answer_call(wait)
        return {**wait, "outcome": outcome, "seconds": seconds, "end": self._now + seconds}

    def _answer_call(self, wait: Dict[str, Any]) -> Any:
        workflow_id = wait["workflowId"]
        if workflow_id not in self._calls:
            raise LookupError(f'The run calls "{workflow_id}", which `calls` does not have.')
        try:
            output, seconds = _resolve(self._calls[workflow_id], wait["variableData"])
            return {"ok": True, "output": output}, seconds
        except Exception as error:
            described = describe_error(error)
            failure = {"name": described["name"], "message": described["message"]}
            return {"ok": False, "runId": str(uuid.uuid4()), "status": "failed", "error": failure}, 0.0

    def _skip(self) -> None:
        """Lets time pass until one of the awaited waits ends."""
        wait = min((self._open[name] for name in self._awaited), key=lambda each: float(each["end"]))
        self._clock.skip(max(0.0, wait["end"] - self._now))
        self._now = max(self._now, wait["end"])
        del self._open[wait["name"]]
        self._recorded[wait["name"]] = wait["outcome"]
        self.result.waits.append({name: wait[name] for name in ("name", "kind", "seconds", "outcome")})

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        """What is printed and logged goes to the run's log."""
        handler = _Handler(self)
        root = logging.getLogger()
        level = root.level
        root.addHandler(handler)
        root.setLevel(min(level or logging.INFO, logging.INFO))
        try:
            with contextlib.redirect_stdout(_Lines(self)):
                yield
        finally:
            root.removeHandler(handler)
            root.setLevel(level)


class _TestedRun(Run):
    def __init__(
        self,
        test: _Test,
        fakes: Mapping[str, Any],
        run_id: str,
        attempt: int,
        workflow: Workflow[Any, Any],
        results: Mapping[str, Any],
        declared: Mapping[str, Any],
    ) -> None:
        waited = bool(test.result.waits)
        super().__init__(
            test, id=run_id, attempt=attempt, waits=workflow.waits, results=results, has_waited=waited, **declared
        )
        self._fakes = fakes

    def replace(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if name not in self._fakes:
            return function

        def fake(*args: Any, **kwargs: Any) -> Any:
            value = self._fakes[name]
            if isinstance(value, BaseException):
                raise value
            return value(*args, **kwargs) if callable(value) else value

        fake.__annotations__ = dict(getattr(function, "__annotations__", {}))
        fake.__module__ = getattr(function, "__module__", fake.__module__)
        return fake


class _Handler(logging.Handler):
    def __init__(self, test: _Test) -> None:
        super().__init__()
        self._test = test

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warn" if record.levelno >= logging.WARNING else "info"
        self._test.report_line(level, self.format(record))


class _Lines(io.StringIO):
    def __init__(self, test: _Test) -> None:
        super().__init__()
        self._test, self._text = test, ""

    def write(self, text: str) -> int:
        *lines, self._text = (self._text + text).split("\n")
        for line in lines:
            self._test.report_line("info", line)
        return len(text)


def _resolve(given: Any, *arguments: Any) -> Any:
    """The value as JSON, and after how many seconds it comes."""
    value = given(*arguments) if callable(given) and not isinstance(given, type) else given
    return (encode(value.value), value.seconds) if isinstance(value, After) else (encode(value), 0.0)


def _fill_defaults(value: Any, schema: Any, root: Any = None) -> Any:
    root = schema if root is None else root
    schema = target_of(schema, root)
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list) and "items" in schema:
        return [_fill_defaults(each, schema["items"], root) for each in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    defaults = {name: each["default"] for name, each in properties.items() if isinstance(each, dict) and "default" in each}
    return {name: _fill_defaults(each, properties.get(name), root) for name, each in {**defaults, **value}.items()}


def _secrets(value: Any, schema: Any, root: Any = None) -> List[str]:
    """Texts of at least 4 characters that the schema marks as writeOnly."""
    root = schema if root is None else root
    schema = target_of(schema, root)
    if not isinstance(schema, dict):
        return []
    if schema.get("writeOnly") and isinstance(value, str) and len(value) >= 4:
        return [value]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return [secret for name, each in value.items() for secret in _secrets(each, properties.get(name), root)]
    if isinstance(value, list):
        return [secret for each in value for secret in _secrets(each, schema.get("items"), root)]
    return []
