"""The run that an ``async def`` workflow gets: steps and waits that are awaited, and that ``asyncio.gather`` combines."""

from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import inspect
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union, overload

from .errors import Cancelled, Refused
from .hints import return_hint
from .run import (
    STAY_SECONDS,
    Duration,
    Run,
    answer_of,
    answer_request,
    artifact_request,
    call_request,
    output_of_call,
    sleep_request,
)
from .values import decode
from .workflow import Wait, Workflow

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    from .run import CallOptions

    P = ParamSpec("P")

V = TypeVar("V")
T = TypeVar("T")
O = TypeVar("O")

#: Turns of the event loop that other tasks get to reach what they wait for, before the run asks what has ended.
_TURNS = 20


class AsyncRun:
    """One execution of an ``async def`` workflow. Its methods are those of :class:`Run`.

    A run is suspended when its tasks wait for nothing but waits. Tasks that await something else start again with the
    next part: put that into a step.
    """

    def __init__(self, run: Run, task: asyncio.Task[Any]) -> None:
        self._run = run
        #: Executes the function. Its cancellation leaves the function, as nothing that it awaits resolves any more.
        self._task = task
        self._loop = asyncio.get_running_loop()
        #: One request at a time.
        self._requests = concurrent.futures.ThreadPoolExecutor(1, "execution-service-run")
        self._open: Dict[str, asyncio.Future[Any]] = {}
        #: When the short sleeps end, for which the run stays in its process.
        self._short: Dict[str, float] = {}
        #: Results in the order in which the code gets them, which is the same each time: a race has one winner.
        self._order: List[str] = run.recorded
        self._results: Dict[str, Any] = {}
        self._asked: Dict[str, asyncio.Future[Any]] = {}
        self._executing = 0
        self._sending: Optional[asyncio.Future[Any]] = None
        self._turns = 0

    @property
    def id(self) -> str:
        """The run's id. With the name of a step, it makes an idempotency key for other services."""
        return self._run.id

    @property
    def attempt(self) -> int:
        """1 for the first attempt."""
        return self._run.attempt

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets that the workflow declares, by name. The service masks them in what the run reports."""
        return self._run.secrets

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the workflow declares, by name, of the declared types."""
        return self._run.settings

    @overload
    async def step(self, name: str, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls the function and stores its result. One that is no coroutine function executes in a thread."""
        run = self._run
        called = run.replace(name, function)
        hint = return_hint(called)
        if run.begin_step(name):
            await self._in_order(name)
            return run.result_of(name, hint)
        self._executing += 1
        try:
            try:
                value = run.check_result(name, await _call(called, args, kwargs), hint)
            except Exception as error:
                run.fail_step(name, error)
                raise
            await self._ask({"type": "step", "name": name, "value": value})
        finally:
            self._executing -= 1
            run.end_step(name)
            self._look_later()
        return decode(value, Any if hint is None else hint)

    async def sleep(
        self, name: str, duration: Optional[Duration] = None, *, until: Optional[datetime.datetime] = None
    ) -> None:
        """Returns when the time has passed. :param duration: a timedelta, or seconds."""
        await self._wait(sleep_request(name, duration, until))

    async def wait_for(
        self,
        wait: Union[Wait[T], str],
        *,
        title: Optional[str] = None,
        timeout: Duration = 7 * 86_400,
        show: Optional[Mapping[str, Any]] = None,
    ) -> T:
        """Returns the answer of a caller or a person. :raises WaitTimedOut: if none came in time."""
        declared = self._run.declared(wait)
        outcome = await self._wait(answer_request(declared.name, title, timeout, show))
        answer: T = answer_of(outcome, declared)
        return answer

    @overload
    async def call(
        self, name: str, workflow: Workflow[None, O], variables: None = None, **options: Unpack[CallOptions]
    ) -> O: ...

    @overload
    async def call(self, name: str, workflow: Workflow[V, O], variables: V, **options: Unpack[CallOptions]) -> O: ...

    @overload
    async def call(
        self, name: str, workflow: str, variables: Any = None, *, output: Any = Any, **options: Unpack[CallOptions]
    ) -> Any: ...

    async def call(
        self, name: str, workflow: Union[Workflow[Any, Any], str], variables: Any = None, *, output: Any = Any, **options: Any
    ) -> Any:
        """Queues a run of a workflow, once however often the function is called, and returns its output.

        :raises CalledRunFailed: if the run does not succeed. :raises Refused: if it cannot be queued.
        """
        outcome = await self._wait(call_request(name, workflow, variables, options))
        return output_of_call(outcome, name, workflow.output if isinstance(workflow, Workflow) else output)

    async def artifact(self, name: str, content: Union[bytes, str], *, media_type: Optional[str] = None) -> None:
        """Stores a file with the run. One of the same name is replaced."""
        self._run.check()
        request = artifact_request(name, content, media_type)
        if not self._run.is_repeating:
            await self._ask(request)

    def log(self, message: object, level: str = "info") -> None:
        """Writes a line to the run's log. ``print`` and ``logging`` write there too."""
        self._run.log(message, level)

    def progress(self, percent: float, message: Optional[str] = None) -> None:
        """Reports the progress of the run, from 0 to 100."""
        self._run.progress(percent, message)

    async def _wait(self, request: Dict[str, Any]) -> Any:
        name = request["name"]
        self._run.begin(name)
        if self._run.has_result(name):
            await self._in_order(name)
            return self._run.result_of(name)
        self._run.reach(request)
        if request.get("seconds", STAY_SECONDS + 1) <= STAY_SECONDS:
            self._short[name] = self._loop.time() + request["seconds"]
        future = self._open[name] = self._loop.create_future()
        self._look_later()
        return await future

    async def _in_order(self, name: str) -> None:
        future = self._asked[name] = self._loop.create_future()
        self._look_later()
        await future

    async def _ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        return await self._loop.run_in_executor(self._requests, self._run.ask, request)

    def _look_later(self) -> None:
        """Looks at what is open when the tasks have reached what they wait for."""
        is_scheduled, self._turns = self._turns > 0, _TURNS
        if not is_scheduled:
            self._loop.call_soon(self._pass_turn)

    def _pass_turn(self) -> None:
        self._turns -= 1
        if self._turns > 0:
            self._loop.call_soon(self._pass_turn)
        else:
            self._look()

    def _look(self) -> None:
        if self._asked:
            # The first of those that the code has asked for. What it asks for next, it does after it has got this one.
            name = next((each for each in self._order if each in self._asked), next(iter(self._asked)))
            future = self._asked.pop(name)
            if not future.done():
                future.set_result(self._results.get(name))
            return self._look_later()
        if self._sending or not self._open:
            return
        stays = self._executing > 0 or self._loop.time() < min(self._short.values(), default=0)
        reached = self._run.take_reached()
        if stays and not reached:
            if self._short:
                self._loop.call_at(min(self._short.values()), self._look_later)
            return
        self._sending = asyncio.ensure_future(self._send(reached, not stays))

    async def _send(self, reached: Sequence[Dict[str, Any]], suspend: bool) -> None:
        names = list(self._open)
        try:
            reply = await self._ask({"type": "waits", "waits": reached, "names": names, "suspend": suspend})
        except Cancelled:
            return None  # So is the task.
        except Exception as error:
            return self._fail(error)
        finally:
            self._sending = None
        if reply.get("suspended"):
            self._run.is_suspended = True
            self._task.cancel()
            return None
        for each in reply.get("ended", ()):
            name = each["name"]
            self._short.pop(name, None)
            self._order.append(name)
            self._results[name] = each["outcome"]
            self._asked[name] = self._open.pop(name)
        for each in reply.get("refused", ()):
            future = self._open.pop(each["name"])
            if not future.done():
                future.set_exception(Refused(each["errorName"], each["message"]))
        self._look_later()

    def _fail(self, error: Exception) -> None:
        waiting, self._open = list(self._open.values()), {}
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    def _close(self) -> None:
        if self._sending:
            self._sending.cancel()
        self._requests.shutdown(wait=True)


async def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await asyncio.to_thread(function, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def execute_async(function: Callable[..., Awaitable[Any]], run: Run, arguments: Sequence[Any]) -> Any:
    """Executes the function in an event loop of its own. The run's cancellation cancels its task."""
    return asyncio.run(_execute(function, run, arguments))


async def _execute(function: Callable[..., Awaitable[Any]], run: Run, arguments: Sequence[Any]) -> Any:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_handle)
    task = asyncio.current_task()
    assert task is not None
    run.on_abort = lambda: _call_soon(loop, task.cancel)
    context = AsyncRun(run, task)
    try:
        run.check()
        return await function(context, *arguments)
    except asyncio.CancelledError:
        run.check()
        raise
    finally:
        run.on_abort = lambda: None
        context._close()


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], Any]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        pass  # It has just been closed.


def _handle(loop: asyncio.AbstractEventLoop, context: Dict[str, Any]) -> None:
    """Other tasks of a run that is cancelled have nobody who awaits them."""
    if not isinstance(context.get("exception"), Cancelled):
        loop.default_exception_handler(context)
