"""The clients for callers: queue runs, wait for them, follow them, answer their waits, and what belongs to that."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import json
import os
import socket
import threading
import time
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Type,
    TypeVar,
    Union,
    overload,
)

from . import calls
from .calls import BatchOptions, BulkAction, FileInfo, FileSource, Period, QueueOptions, RunFilters, RunInfo, ScheduleInfo, ScheduleOptions
from .errors import ApiError, ServiceUnreachable
from .http import TEMPORARY, Transport, backoff, quote
from .workflow import Wait, Workflow

if TYPE_CHECKING:
    # Type checkers know it without the package.
    from typing_extensions import Unpack

    from .calls import RerunOptions

V = TypeVar("V")
O = TypeVar("O")
T = TypeVar("T")

Run = Union[RunInfo[Any], str]
_WAIT_SECONDS_MAX = 30


class _Stop:
    """Ends a stream that another thread reads."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._socket: Optional[socket.socket] = None

    def watch(self, connected: socket.socket) -> None:
        self._socket = connected
        if self.requested.is_set():
            self.request()

    def request(self) -> None:
        self.requested.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class _Caller:
    """Sends calls, and reads lists and streams."""

    def __init__(self, url: str, api_key: Optional[str] = None, *, timeout: float = 30, retries: int = 3) -> None:
        """
        :param api_key: ``API_KEY`` of the environment by default.
        :param timeout: seconds for each attempt of a request.
        :param retries: how often a request is repeated that has failed for a temporary reason.
        """
        self._transport = Transport(url, os.environ.get("API_KEY", "") if api_key is None else api_key, timeout)
        self._retries = retries
        self._timeout = timeout

    def send(self, call: calls.Call) -> Any:
        response = self._transport.request(
            call.method,
            call.path,
            call.body,
            headers=call.headers,
            timeout=self._timeout + call.seconds if call.seconds else None,
            attempts=1 + self._retries,
        )
        return call.parse(response.body if call.is_file else response.json())

    def pages(self, path: str) -> Iterator[List[Dict[str, Any]]]:
        cursor: Optional[str] = None
        while True:
            page = self.send(calls.Call("GET", calls.page_path(path, cursor)))
            yield page["data"]
            if page["nextCursor"] is None or page["nextCursor"] == cursor:
                return
            cursor = page["nextCursor"]

    def events(self, run_id: str, after: int, deadline: Optional[float], stop: _Stop) -> Iterator[Dict[str, Any]]:
        failures = 0
        path = f"/v1/execution/runs/{quote(run_id)}/events"
        while not stop.requested.is_set():
            # The service sends a comment every 15 seconds.
            left = 45.0 if deadline is None else min(45.0, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"Run {run_id} has not ended in time. It continues.")
            try:
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(after)} if after else {})}
                with self._transport.stream(path, headers, left, stop.watch) as response:
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
                    stop.requested.wait(backoff(failures) if asked is None else asked)

    def wait(self, run_id: str, timeout: Optional[float], output: Any, stop: _Stop) -> Any:
        deadline = None if timeout is None else time.monotonic() + timeout
        for _ in self.events(run_id, 0, deadline, stop):
            pass
        return self.send(calls.get(run_id, output))

    def close(self) -> None:
        self._transport.close()


class Client:
    """Calls the Execution API with one API key. Threads may share it.

    :param api_key: ``API_KEY`` of the environment by default.
    :param timeout: seconds for each attempt of a request.
    :param retries: how often a request is repeated that has failed for a temporary reason.
    """

    def __init__(self, url: str, api_key: Optional[str] = None, *, timeout: float = 30, retries: int = 3) -> None:
        self._caller = _Caller(url, api_key, timeout=timeout, retries=retries)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._caller.close()

    @overload
    def queue(
        self, workflow: Workflow[None, O], variables: None = None, **options: Unpack[QueueOptions]
    ) -> RunInfo[O]: ...

    @overload
    def queue(self, workflow: Workflow[V, O], variables: V, **options: Unpack[QueueOptions]) -> RunInfo[O]: ...

    @overload
    def queue(
        self, workflow: str, variables: Any = None, *, output: Type[O], **options: Unpack[QueueOptions]
    ) -> RunInfo[O]: ...

    @overload
    def queue(self, workflow: str, variables: Any = None, **options: Unpack[QueueOptions]) -> RunInfo[Any]: ...

    def queue(
        self, workflow: Union[Workflow[Any, Any], str], variables: Any = None, *, output: Any = Any, **options: Any
    ) -> RunInfo[Any]:
        """Queues a run.

        :param workflow: a workflow, or its id.
        :param variables: an object of the workflow's type; a dictionary or any object if the workflow is given by its id.
        :param output: the type of the output, if the workflow is given by its id.
        :param options: those of :class:`QueueOptions`.
        """
        run: RunInfo[Any] = self._caller.send(calls.queue(workflow, variables, output, options))
        return run

    @overload
    def queue_many(
        self, workflow: Workflow[V, O], variables: Sequence[V], **options: Unpack[BatchOptions]
    ) -> List[RunInfo[O]]: ...

    @overload
    def queue_many(
        self, workflow: str, variables: Sequence[Any], *, output: Any = Any, **options: Unpack[BatchOptions]
    ) -> List[RunInfo[Any]]: ...

    def queue_many(
        self, workflow: Union[Workflow[Any, Any], str], variables: Sequence[Any], *, output: Any = Any, **options: Any
    ) -> List[RunInfo[Any]]:
        """Queues a run for each of the variables, at most 1,000: all, or none if one of them is refused."""
        runs: List[RunInfo[Any]] = self._caller.send(calls.queue_many(workflow, variables, output, options))
        return runs

    @overload
    def run(
        self,
        workflow: Workflow[None, O],
        variables: None = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> O: ...

    @overload
    def run(
        self,
        workflow: Workflow[V, O],
        variables: V,
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
        output: Any = Any,
        timeout: Optional[float] = None,
        **options: Any,
    ) -> Any:
        """Queues a run, waits for its end and returns its output.

        :param options: those of :meth:`queue`.
        :raises RunFailed: if it does not succeed. :raises TimeoutError: after ``timeout`` seconds; the run continues.
        """
        started = time.monotonic()
        options.setdefault("wait_seconds", _first_wait(timeout))
        run = self._caller.send(calls.queue(workflow, variables, output, options))
        if not run.is_finished:
            run = self.wait(run, timeout=None if timeout is None else timeout - (time.monotonic() - started))
        return run.output

    def get(self, run: Union[RunInfo[O], str], *, output: Any = Any) -> RunInfo[O]:
        """Reads a run. :param output: the type of the output, if the run is given by its id."""
        read: RunInfo[O] = self._caller.send(calls.get(run, output))
        return read

    def wait(self, run: Union[RunInfo[O], str], *, timeout: Optional[float] = None, output: Any = Any) -> RunInfo[O]:
        """Returns the run when it has ended, also if it has failed. :raises TimeoutError: after ``timeout`` seconds."""
        run_id, output = calls.id_and_output(run, output)
        ended: RunInfo[O] = self._caller.wait(run_id, timeout, output, _Stop())
        return ended

    def follow(self, run: Run, *, after: int = 0) -> Iterator[Dict[str, Any]]:
        """The events of a run: those so far, then each new one, until it has ended. Broken connections are continued.

        :param after: the ``sequence`` of the last event that was received before.
        """
        return self._caller.events(calls.id_and_output(run, Any)[0], after, None, _Stop())

    def list(self, **filters: Any) -> Iterator[RunInfo[Any]]:
        """Runs, the newest first. Filters are those of ``listRuns`` in snake_case, such as ``status`` and ``workflow_id``."""
        for page in self._caller.pages(calls.list_runs(filters)):
            for run in page:
                yield calls.run_info(run, Any)

    def cancel(self, run: Union[RunInfo[O], str]) -> RunInfo[O]:
        """Cancels a run. One that runs ends a little later."""
        cancelled: RunInfo[O] = self._caller.send(calls.cancel(run))
        return cancelled

    def rerun(
        self,
        run: Union[RunInfo[O], str],
        variables: Any = None,
        *,
        from_step: Optional[str] = None,
        **options: Unpack[RerunOptions],
    ) -> RunInfo[O]:
        """Queues a new run with what a finished one was queued with.

        :param variables: all of them, in place of those of the finished run.
        :param from_step: the step that the new run starts from, with the results of those before it.
        """
        queued: RunInfo[O] = self._caller.send(calls.rerun(run, variables, from_step, options))
        return queued

    def delete(self, run: Run) -> None:
        """Deletes a finished run."""
        self._caller.send(calls.delete(run))

    def bulk_cancel(self, **filters: Unpack[RunFilters]) -> BulkAction:
        """Cancels all runs that match the filters. :meth:`bulk_action` tells how far it is."""
        action: BulkAction = self._caller.send(calls.bulk("cancel", filters))
        return action

    def bulk_rerun(self, **filters: Unpack[RunFilters]) -> BulkAction:
        """Queues a new run for each finished run that matches the filters."""
        action: BulkAction = self._caller.send(calls.bulk("rerun", filters))
        return action

    def bulk_action(self, action: Union[BulkAction, str]) -> BulkAction:
        """Reads a bulk action."""
        read: BulkAction = self._caller.send(calls.bulk_action(action))
        return read

    @overload
    def answer(self, run: Run, wait: Wait[T], value: T) -> Dict[str, Any]: ...

    @overload
    def answer(self, run: Run, wait: str, value: Any) -> Dict[str, Any]: ...

    def answer(self, run: Run, wait: Union[Wait[Any], str], value: Any) -> Dict[str, Any]:
        """Answers a wait of a run, also before the run has reached it. :raises ApiError: 409 if it has another answer.

        :param value: an object of the wait's type; any value of JSON if the wait is given by its name.
        """
        answered: Dict[str, Any] = self._caller.send(calls.answer(run, wait, value))
        return answered

    def answer_link(self, run: Run, wait: Union[Wait[Any], str], *, expires_in: Optional[Period] = None) -> str:
        """An address at which a person without an account answers a wait. :param expires_in: a week by default."""
        url: str = self._caller.send(calls.answer_link(run, wait, expires_in))
        return url

    def waits(self, run: Run) -> List[Dict[str, Any]]:
        """What a run waits for, or has waited for."""
        return [wait for page in self._caller.pages(calls.waits_path(run)) for wait in page]

    def artifact(self, run: Run, name: str) -> bytes:
        """The content of a file that a run has stored."""
        content: bytes = self._caller.send(calls.artifact(run, name))
        return content

    def upload(self, source: FileSource, *, name: Optional[str] = None, media_type: Optional[str] = None) -> FileInfo:
        """Stores a file, whose ``id`` the variables of runs take.

        :param source: the path of a file, its content, or a file that is open.
        :param name: that of the path by default. :param media_type: follows from the name's extension by default.
        """
        file: FileInfo = self._caller.send(calls.upload(source, name, media_type))
        return file

    def download(self, file: Union[FileInfo, str]) -> bytes:
        """The content of a file that was uploaded."""
        content: bytes = self._caller.send(calls.download(file))
        return content

    def delete_file(self, file: Union[FileInfo, str]) -> None:
        """Deletes a file to which no run and no schedule refers."""
        self._caller.send(calls.delete_file(file))

    @overload
    def create_schedule(
        self, workflow: Workflow[None, Any], variables: None = None, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo: ...

    @overload
    def create_schedule(
        self, workflow: Workflow[V, Any], variables: V, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo: ...

    @overload
    def create_schedule(self, workflow: str, variables: Any = None, **options: Unpack[ScheduleOptions]) -> ScheduleInfo: ...

    def create_schedule(self, workflow: Union[Workflow[Any, Any], str], variables: Any = None, **options: Any) -> ScheduleInfo:
        """Creates a schedule: ``cron="0 7 * * MON-FRI", time_zone="Europe/Berlin"``, or ``interval=timedelta(hours=1)``."""
        created: ScheduleInfo = self._caller.send(calls.create_schedule(workflow, variables, options))
        return created

    def schedules(self, workflow: Union[Workflow[Any, Any], str, None] = None) -> Iterator[ScheduleInfo]:
        """The schedules of the account, or of a workflow."""
        for page in self._caller.pages(calls.schedules_path(workflow)):
            yield from map(calls.schedule_info, page)

    def schedule(self, schedule: Union[ScheduleInfo, str]) -> ScheduleInfo:
        """Reads a schedule."""
        read: ScheduleInfo = self._caller.send(calls.schedule(schedule))
        return read

    def update_schedule(
        self, schedule: Union[ScheduleInfo, str], variables: Any = None, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo:
        """Changes what is given: ``paused=True``, for example."""
        updated: ScheduleInfo = self._caller.send(calls.update_schedule(schedule, variables, options))
        return updated

    def delete_schedule(self, schedule: Union[ScheduleInfo, str]) -> None:
        """Deletes a schedule. Its runs stay."""
        self._caller.send(calls.delete_schedule(schedule))

    def trigger_schedule(self, schedule: Union[ScheduleInfo, str]) -> RunInfo[Any]:
        """Queues a run of a schedule now."""
        run: RunInfo[Any] = self._caller.send(calls.trigger_schedule(schedule))
        return run


class AsyncClient:
    """The calls of :class:`Client` for ``asyncio``. A call takes a thread while it waits for its response.

    :param connections: how many calls and streams may be in flight. Others wait.
    """

    def __init__(
        self, url: str, api_key: Optional[str] = None, *, timeout: float = 30, retries: int = 3, connections: int = 64
    ) -> None:
        self._caller = _Caller(url, api_key, timeout=timeout, retries=retries)
        self._threads = concurrent.futures.ThreadPoolExecutor(connections, "execution-service-client")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        self._caller.close()
        self._threads.shutdown(wait=False)

    @overload
    async def queue(
        self, workflow: Workflow[None, O], variables: None = None, **options: Unpack[QueueOptions]
    ) -> RunInfo[O]: ...

    @overload
    async def queue(self, workflow: Workflow[V, O], variables: V, **options: Unpack[QueueOptions]) -> RunInfo[O]: ...

    @overload
    async def queue(
        self, workflow: str, variables: Any = None, *, output: Type[O], **options: Unpack[QueueOptions]
    ) -> RunInfo[O]: ...

    @overload
    async def queue(self, workflow: str, variables: Any = None, **options: Unpack[QueueOptions]) -> RunInfo[Any]: ...

    async def queue(
        self, workflow: Union[Workflow[Any, Any], str], variables: Any = None, *, output: Any = Any, **options: Any
    ) -> RunInfo[Any]:
        run: RunInfo[Any] = await self._send(calls.queue(workflow, variables, output, options))
        return run

    @overload
    async def queue_many(
        self, workflow: Workflow[V, O], variables: Sequence[V], **options: Unpack[BatchOptions]
    ) -> List[RunInfo[O]]: ...

    @overload
    async def queue_many(
        self, workflow: str, variables: Sequence[Any], *, output: Any = Any, **options: Unpack[BatchOptions]
    ) -> List[RunInfo[Any]]: ...

    async def queue_many(
        self, workflow: Union[Workflow[Any, Any], str], variables: Sequence[Any], *, output: Any = Any, **options: Any
    ) -> List[RunInfo[Any]]:
        runs: List[RunInfo[Any]] = await self._send(calls.queue_many(workflow, variables, output, options))
        return runs

    @overload
    async def run(
        self,
        workflow: Workflow[None, O],
        variables: None = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> O: ...

    @overload
    async def run(
        self,
        workflow: Workflow[V, O],
        variables: V,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> O: ...

    @overload
    async def run(
        self,
        workflow: str,
        variables: Any = None,
        *,
        output: Type[O],
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> O: ...

    @overload
    async def run(
        self,
        workflow: str,
        variables: Any = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[QueueOptions],
    ) -> Any: ...

    async def run(
        self,
        workflow: Union[Workflow[Any, Any], str],
        variables: Any = None,
        *,
        output: Any = Any,
        timeout: Optional[float] = None,
        **options: Any,
    ) -> Any:
        started = time.monotonic()
        options.setdefault("wait_seconds", _first_wait(timeout))
        run = await self._send(calls.queue(workflow, variables, output, options))
        if not run.is_finished:
            run = await self.wait(run, timeout=None if timeout is None else timeout - (time.monotonic() - started))
        return run.output

    async def get(self, run: Union[RunInfo[O], str], *, output: Any = Any) -> RunInfo[O]:
        read: RunInfo[O] = await self._send(calls.get(run, output))
        return read

    async def wait(
        self, run: Union[RunInfo[O], str], *, timeout: Optional[float] = None, output: Any = Any
    ) -> RunInfo[O]:
        run_id, output = calls.id_and_output(run, output)
        stop = _Stop()
        ended: RunInfo[O] = await self._in_thread(stop, functools.partial(self._caller.wait, run_id, timeout, output, stop))
        return ended

    async def follow(self, run: Run, *, after: int = 0) -> AsyncIterator[Dict[str, Any]]:
        stop = _Stop()
        async for event in self._iterate(self._caller.events(calls.id_and_output(run, Any)[0], after, None, stop), stop):
            yield event

    async def list(self, **filters: Any) -> AsyncIterator[RunInfo[Any]]:
        async for page in self._iterate(self._caller.pages(calls.list_runs(filters)), _Stop()):
            for run in page:
                yield calls.run_info(run, Any)

    async def cancel(self, run: Union[RunInfo[O], str]) -> RunInfo[O]:
        cancelled: RunInfo[O] = await self._send(calls.cancel(run))
        return cancelled

    async def rerun(
        self,
        run: Union[RunInfo[O], str],
        variables: Any = None,
        *,
        from_step: Optional[str] = None,
        **options: Unpack[RerunOptions],
    ) -> RunInfo[O]:
        queued: RunInfo[O] = await self._send(calls.rerun(run, variables, from_step, options))
        return queued

    async def delete(self, run: Run) -> None:
        await self._send(calls.delete(run))

    async def bulk_cancel(self, **filters: Unpack[RunFilters]) -> BulkAction:
        action: BulkAction = await self._send(calls.bulk("cancel", filters))
        return action

    async def bulk_rerun(self, **filters: Unpack[RunFilters]) -> BulkAction:
        action: BulkAction = await self._send(calls.bulk("rerun", filters))
        return action

    async def bulk_action(self, action: Union[BulkAction, str]) -> BulkAction:
        read: BulkAction = await self._send(calls.bulk_action(action))
        return read

    @overload
    async def answer(self, run: Run, wait: Wait[T], value: T) -> Dict[str, Any]: ...

    @overload
    async def answer(self, run: Run, wait: str, value: Any) -> Dict[str, Any]: ...

    async def answer(self, run: Run, wait: Union[Wait[Any], str], value: Any) -> Dict[str, Any]:
        answered: Dict[str, Any] = await self._send(calls.answer(run, wait, value))
        return answered

    async def answer_link(self, run: Run, wait: Union[Wait[Any], str], *, expires_in: Optional[Period] = None) -> str:
        url: str = await self._send(calls.answer_link(run, wait, expires_in))
        return url

    async def waits(self, run: Run) -> List[Dict[str, Any]]:
        return [each async for page in self._iterate(self._caller.pages(calls.waits_path(run)), _Stop()) for each in page]

    async def artifact(self, run: Run, name: str) -> bytes:
        content: bytes = await self._send(calls.artifact(run, name))
        return content

    async def upload(self, source: FileSource, *, name: Optional[str] = None, media_type: Optional[str] = None) -> FileInfo:
        file: FileInfo = await self._send(calls.upload(source, name, media_type))
        return file

    async def download(self, file: Union[FileInfo, str]) -> bytes:
        content: bytes = await self._send(calls.download(file))
        return content

    async def delete_file(self, file: Union[FileInfo, str]) -> None:
        await self._send(calls.delete_file(file))

    @overload
    async def create_schedule(
        self, workflow: Workflow[None, Any], variables: None = None, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo: ...

    @overload
    async def create_schedule(
        self, workflow: Workflow[V, Any], variables: V, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo: ...

    @overload
    async def create_schedule(
        self, workflow: str, variables: Any = None, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo: ...

    async def create_schedule(
        self, workflow: Union[Workflow[Any, Any], str], variables: Any = None, **options: Any
    ) -> ScheduleInfo:
        created: ScheduleInfo = await self._send(calls.create_schedule(workflow, variables, options))
        return created

    async def schedules(self, workflow: Union[Workflow[Any, Any], str, None] = None) -> AsyncIterator[ScheduleInfo]:
        async for page in self._iterate(self._caller.pages(calls.schedules_path(workflow)), _Stop()):
            for each in page:
                yield calls.schedule_info(each)

    async def schedule(self, schedule: Union[ScheduleInfo, str]) -> ScheduleInfo:
        read: ScheduleInfo = await self._send(calls.schedule(schedule))
        return read

    async def update_schedule(
        self, schedule: Union[ScheduleInfo, str], variables: Any = None, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo:
        updated: ScheduleInfo = await self._send(calls.update_schedule(schedule, variables, options))
        return updated

    async def delete_schedule(self, schedule: Union[ScheduleInfo, str]) -> None:
        await self._send(calls.delete_schedule(schedule))

    async def trigger_schedule(self, schedule: Union[ScheduleInfo, str]) -> RunInfo[Any]:
        run: RunInfo[Any] = await self._send(calls.trigger_schedule(schedule))
        return run

    async def _send(self, call: calls.Call) -> Any:
        return await self._in_thread(_Stop(), functools.partial(self._caller.send, call))

    async def _in_thread(self, stop: _Stop, act: Callable[[], Any]) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        except asyncio.CancelledError:
            stop.request()
            raise

    async def _iterate(self, iterator: Iterator[Any], stop: _Stop) -> AsyncIterator[Any]:
        end = object()
        try:
            while True:
                item = await self._in_thread(stop, functools.partial(next, iterator, end))
                if item is end:
                    return
                yield item
        finally:
            stop.request()


def _first_wait(timeout: Optional[float]) -> int:
    """Seconds for which the response may wait for the end of the run."""
    return _WAIT_SECONDS_MAX if timeout is None else max(0, min(_WAIT_SECONDS_MAX, int(timeout)))
