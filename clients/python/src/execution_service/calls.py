"""The calls of callers, as HTTP requests and their results: once for :class:`Client` and :class:`AsyncClient`."""

from __future__ import annotations

import dataclasses
import datetime
import mimetypes
import os
import urllib.parse
import uuid
from pathlib import Path
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)

from .errors import RunError, RunFailed
from .hints import camel_case
from .http import quote
from .values import decode, encode
from .workflow import Wait, Workflow

if TYPE_CHECKING:
    from typing_extensions import Literal

O = TypeVar("O")

#: A file, by its path or its content.
FileSource = Union[str, "os.PathLike[str]", bytes, IO[bytes]]
Period = Union[datetime.timedelta, int]

_FINAL = frozenset(("succeeded", "failed", "timedOut", "cancelled", "expired"))
_RUNS = "/v1/execution/runs"
_SCHEDULES = "/v1/execution/schedules"


class QueueOptions(TypedDict, total=False):
    """Options of :meth:`Client.queue`."""

    tags: Sequence[str]
    #: -10 to 10. Of an account's runs that are ready, the one with the highest priority starts first.
    priority: Optional[int]
    delay_seconds: Optional[int]
    expires_in_seconds: Optional[int]
    concurrency_key: Optional[str]
    browser_context_id: Optional[str]
    persist_context: Optional[str]
    #: Queues one run, however often the call is repeated with this key. A random one by default.
    idempotency_key: Optional[str]
    #: For how long the response may wait for the end of the run, at most 30.
    wait_seconds: int


class BatchOptions(TypedDict, total=False):
    """Options of :meth:`Client.queue_many`."""

    tags: Sequence[str]
    priority: Optional[int]
    delay_seconds: Optional[int]
    expires_in_seconds: Optional[int]
    concurrency_key: Optional[str]
    browser_context_id: Optional[str]
    persist_context: Optional[str]
    idempotency_key: Optional[str]


class RunFilters(TypedDict, total=False):
    """Filters of :meth:`Client.list`, :meth:`Client.bulk_cancel` and :meth:`Client.bulk_rerun`."""

    workflow_id: str
    status: Union[str, Sequence[str]]
    tag: Union[str, Sequence[str]]
    reason: str
    browser_context_id: str
    api_key_id: str
    schedule_id: str
    error_word: str
    created_after: datetime.datetime
    created_before: datetime.datetime


class ScheduleOptions(TypedDict, total=False):
    """Options of :meth:`Client.create_schedule`, with exactly one of ``cron`` and ``interval``."""

    name: Optional[str]
    cron: str
    time_zone: str
    #: A timedelta, or seconds.
    interval: Period
    missed: Literal["skip", "runOnce", "runAll"]
    overlap: Literal["allow", "skip", "queue", "cancelPrevious"]
    paused: bool
    priority: int
    tags: Sequence[str]
    expires_in_seconds: Optional[int]
    concurrency_key: Optional[str]
    browser_context_id: Optional[str]
    persist_context: str


@dataclasses.dataclass(frozen=True)
class RunInfo(Generic[O]):
    """A run as a caller sees it."""

    id: str
    workflow_id: str
    workflow_version: str
    #: ``queued``, ``running``, ``waiting``, ``succeeded``, ``failed``, ``timedOut``, ``cancelled`` or ``expired``.
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


@dataclasses.dataclass(frozen=True)
class FileInfo:
    """A file of the account. ``str(file)`` is its id, which the variables of a run take."""

    id: str
    name: str
    media_type: str
    bytes: int
    raw: Mapping[str, Any] = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return self.id


@dataclasses.dataclass(frozen=True)
class BulkAction:
    """The cancellation or repetition of the runs of a filter."""

    id: str
    #: ``working``, ``waiting`` or ``finished``.
    status: str
    done: int
    skipped: int
    failed: int
    raw: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def is_finished(self) -> bool:
        return self.status == "finished"


@dataclasses.dataclass(frozen=True)
class ScheduleInfo:
    """A schedule, which queues a run at each of its times."""

    id: str
    name: Optional[str]
    workflow_id: str
    paused: bool
    #: Its next five times; empty while it is paused.
    next_runs_at: Sequence[datetime.datetime]
    raw: Mapping[str, Any] = dataclasses.field(repr=False)


class Call(NamedTuple):
    """A request, and what its response means."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}
    #: In addition to the client's.
    seconds: float = 0
    #: Makes the result of the response, which is JSON unless it is a file.
    parse: Callable[[Any], Any] = lambda value: value
    is_file: bool = False


def queue(workflow: Any, variables: Any, output: Any, options: Mapping[str, Any]) -> Call:
    _check_options("queue", options, QueueOptions)
    given = dict(options)
    wait, key = given.pop("wait_seconds", 0), given.pop("idempotency_key", None)
    headers = {"Idempotency-Key": key or str(uuid.uuid4()), **({"Prefer": f"wait={wait}"} if wait else {})}
    given["tag"] = list(given.pop("tags", None) or ())
    path = f"/v1/execution/queue-remote/{quote(_id_of(workflow))}{query(given)}"
    return Call("PUT", path, _variables(variables), headers, wait, _parse_run(_output_of(workflow, output)))


def queue_many(workflow: Any, variables: Sequence[Any], output: Any, options: Mapping[str, Any]) -> Call:
    _check_options("queue_many", options, BatchOptions)
    given = dict(options)
    headers = {"Idempotency-Key": given.pop("idempotency_key", None) or str(uuid.uuid4())}
    shared = {"workflowId": _id_of(workflow), **_members(given)}
    runs = [{**shared, **_variables(each)} for each in variables]
    parse = _parse_run(_output_of(workflow, output))
    return Call("POST", "/v1/execution/queue-remote-batch", {"runs": runs}, headers, parse=lambda batch: list(map(parse, batch["data"])))


def get(run: Any, output: Any) -> Call:
    run_id, output = id_and_output(run, output)
    return Call("GET", f"{_RUNS}/{quote(run_id)}", parse=_parse_run(output))


def cancel(run: Any) -> Call:
    run_id, output = id_and_output(run, Any)
    return Call("POST", f"{_RUNS}/{quote(run_id)}/cancel", parse=_parse_run(output))


def rerun(run: Any, variables: Any, from_step: Optional[str], options: Mapping[str, Any]) -> Call:
    _check_options("rerun", options, RerunOptions)
    run_id, output = id_and_output(run, Any)
    given = dict(options)
    headers = {"Idempotency-Key": given.pop("idempotency_key", None) or str(uuid.uuid4())}
    given["tag"] = list(given.pop("tags", None) or ())
    body = {**({} if variables is None else _variables(variables)), **({} if from_step is None else {"fromStep": from_step})}
    return Call("POST", f"{_RUNS}/{quote(run_id)}/rerun{query(given)}", body, headers, parse=_parse_run(output))


class RerunOptions(TypedDict, total=False):
    """Options of :meth:`Client.rerun`. By default, those of the run that is repeated."""

    tags: Sequence[str]
    priority: Optional[int]
    delay_seconds: Optional[int]
    expires_in_seconds: Optional[int]
    idempotency_key: Optional[str]


def delete(run: Any) -> Call:
    return Call("DELETE", f"{_RUNS}/{quote(id_and_output(run, Any)[0])}")


def list_runs(filters: Mapping[str, Any]) -> str:
    return _RUNS + query(filters)


def bulk(kind: str, filters: Mapping[str, Any]) -> Call:
    _check_options(f"bulk_{kind}", filters, RunFilters)
    members = _members(filters)
    for name in ("status", "tag"):
        if isinstance(members.get(name), str):
            members[name] = [members[name]]
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    return Call("POST", f"{_RUNS}/bulk-{kind}", members, headers, parse=_parse_bulk)


def bulk_action(action: Union[BulkAction, str]) -> Call:
    action_id = action.id if isinstance(action, BulkAction) else action
    return Call("GET", f"/v1/execution/bulk-actions/{quote(action_id)}", parse=_parse_bulk)


def answer(run: Any, wait: Any, value: Any) -> Call:
    return Call("PUT", _wait_path(run, wait), {"value": encode(value)})


def answer_link(run: Any, wait: Any, expires_in: Optional[Period]) -> Call:
    body = {} if expires_in is None else {"expiresInSeconds": _whole_seconds(expires_in)}
    return Call("POST", f"{_wait_path(run, wait)}/links", body, parse=lambda link: str(link["url"]))


def waits_path(run: Any) -> str:
    return f"{_RUNS}/{quote(id_and_output(run, Any)[0])}/waits"


def artifact(run: Any, name: str) -> Call:
    path = f"{_RUNS}/{quote(id_and_output(run, Any)[0])}/artifacts/{quote(name)}"
    return Call("GET", path, is_file=True)


def upload(source: FileSource, name: Optional[str], media_type: Optional[str]) -> Call:
    content, own_name = _open(source)
    named = name or own_name
    if named is None:
        raise TypeError("The file needs a `name`: its content alone has none.")
    headers = {"Content-Type": media_type or mimetypes.guess_type(named)[0] or "application/octet-stream"}
    return Call("POST", f"/v1/execution/files{query({'name': named})}", content, headers, parse=_parse_file)


def download(file: Union[FileInfo, str]) -> Call:
    return Call("GET", f"/v1/execution/files/{quote(str(file))}", is_file=True)


def delete_file(file: Union[FileInfo, str]) -> Call:
    return Call("DELETE", f"/v1/execution/files/{quote(str(file))}")


def create_schedule(workflow: Any, variables: Any, options: Mapping[str, Any]) -> Call:
    body = {"workflowId": _id_of(workflow), **_variables(variables), **_schedule_members("create_schedule", options)}
    return Call("POST", _SCHEDULES, body, parse=schedule_info)


def update_schedule(schedule: Any, variables: Any, options: Mapping[str, Any]) -> Call:
    given = {} if variables is None else _variables(variables)
    body = {**given, **_schedule_members("update_schedule", options, keep_none=True)}
    return Call("PATCH", _schedule_path(schedule), body, parse=schedule_info)


def schedule(schedule: Any) -> Call:
    return Call("GET", _schedule_path(schedule), parse=schedule_info)


def delete_schedule(schedule: Any) -> Call:
    return Call("DELETE", _schedule_path(schedule))


def trigger_schedule(schedule: Any) -> Call:
    return Call("POST", f"{_schedule_path(schedule)}/trigger", parse=_parse_run(Any))


def schedules_path(workflow: Any) -> str:
    return _SCHEDULES + query({"workflow_id": None if workflow is None else _id_of(workflow)})


def run_info(run: Dict[str, Any], output: Any) -> RunInfo[Any]:
    error = RunError.from_json(run["error"], run.get("attemptHistory") or ())
    return RunInfo(run["id"], run["workflowId"], run["workflowVersion"], run["status"], run["reason"], error, run, output)


def schedule_info(raw: Dict[str, Any]) -> ScheduleInfo:
    times = [decode(each, datetime.datetime) for each in raw["nextRunsAt"]]
    return ScheduleInfo(raw["id"], raw["name"], raw["workflowId"], raw["paused"], times, raw)


def id_and_output(run: Any, output: Any) -> Tuple[str, Any]:
    return (run, output) if isinstance(run, str) else (run.id, run._output)


def query(values: Mapping[str, Any]) -> str:
    given = {camel_case(name): encode(value) for name, value in values.items() if value is not None}
    texts = {name: value for name, value in given.items() if value != []}
    return "?" + urllib.parse.urlencode(texts, doseq=True, quote_via=urllib.parse.quote) if texts else ""


def page_path(path: str, cursor: Optional[str]) -> str:
    if cursor is None:
        return path
    return f"{path}{'&' if '?' in path else '?'}cursor={quote(cursor)}"


def _parse_run(output: Any) -> Callable[[Any], Any]:
    return lambda raw: run_info(raw, output)


def _parse_file(raw: Dict[str, Any]) -> FileInfo:
    return FileInfo(raw["id"], raw["name"], raw["mediaType"], raw["bytes"], raw)


def _parse_bulk(raw: Dict[str, Any]) -> BulkAction:
    return BulkAction(raw["id"], raw["status"], raw["done"], raw["skipped"], raw["failed"], raw)


def _id_of(workflow: Any) -> str:
    return workflow.id if isinstance(workflow, Workflow) else workflow


def _output_of(workflow: Any, output: Any) -> Any:
    return workflow.output if isinstance(workflow, Workflow) else output


def _variables(variables: Any) -> Dict[str, Any]:
    return {"variableData": encode({} if variables is None else variables)}


def _wait_path(run: Any, wait: Any) -> str:
    name = wait.name if isinstance(wait, Wait) else wait
    return f"{_RUNS}/{quote(id_and_output(run, Any)[0])}/waits/{quote(name)}"


def _schedule_path(schedule: Any) -> str:
    return f"{_SCHEDULES}/{quote(schedule.id if isinstance(schedule, ScheduleInfo) else schedule)}"


def _schedule_members(call: str, options: Mapping[str, Any], keep_none: bool = False) -> Dict[str, Any]:
    _check_options(call, options, ScheduleOptions)
    given = dict(options)
    if given.get("interval") is not None:
        given["interval_seconds"] = _whole_seconds(given.pop("interval"))
    return _members(given, keep_none)


def _members(options: Mapping[str, Any], keep_none: bool = False) -> Dict[str, Any]:
    return {camel_case(name): encode(value) for name, value in options.items() if keep_none or value is not None}


def _whole_seconds(period: Any) -> int:
    seconds = period.total_seconds() if isinstance(period, datetime.timedelta) else period
    if seconds != int(seconds):
        raise ValueError(f"A period is a whole number of seconds, not {period!r}.")
    return int(seconds)


def _check_options(call: str, options: Mapping[str, Any], known: Any) -> None:
    unknown = sorted(set(options) - set(known.__annotations__))
    if unknown:
        raise TypeError(f"{call}() has no option `{unknown[0]}`: it has {', '.join(known.__annotations__)}.")


def _open(source: FileSource) -> Tuple[Any, Optional[str]]:
    if isinstance(source, (bytes, bytearray)):
        return bytes(source), None
    if isinstance(source, (str, os.PathLike)):
        return Path(source), Path(source).name
    name = getattr(source, "name", None)
    return source.read(), os.path.basename(name) if isinstance(name, str) else None
