"""The decorator that makes a function a workflow, and the options of a workflow."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Dict, Generic, Mapping, Optional, Sequence, Type, TypeVar, Union, overload

from .errors import InvalidValue, OutputInvalid, SchemaError
from .hints import camel_case, resolve_hints
from .scalars import JsonSchema
from .schema import to_schema
from .values import Drawn, decode, insert_drawn, to_json

if TYPE_CHECKING:
    from typing_extensions import Protocol

    from .async_run import AsyncRun
    from .run import Run

V = TypeVar("V")
O = TypeVar("O")
T = TypeVar("T")


#: The step that records what factories of defaults have made.
DEFAULT_VALUES = "default values"


@dataclasses.dataclass(frozen=True)
class Retry:
    """How failed attempts are repeated: after n of them the next waits ``backoff_seconds * backoff_factor ** (n - 1)``."""

    max_attempts: int = 1
    backoff_seconds: float = 1
    backoff_factor: float = 2


@dataclasses.dataclass(frozen=True)
class Concurrency:
    """How many runs may execute at the same time, counted per ``account``, ``key`` or ``workflow``."""

    limit: int
    per: str = "account"


@dataclasses.dataclass(frozen=True)
class Throttle:
    """How many runs may start within a period, counted per ``account``, ``key`` or ``workflow``."""

    limit: int
    period_seconds: int
    per: str = "account"


@dataclasses.dataclass(frozen=True)
class Wait(Generic[T]):
    """An answer that runs wait for.

    ``approval = Wait("approval", Approval, title="Refund this order?")``
    """

    name: str
    #: The type of the answer, or its JSON Schema.
    type: Union[Type[T], JsonSchema]
    title: Optional[str] = None
    description: Optional[str] = None


class Workflow(Generic[V, O]):
    """A function with what the service has to know of it. Calling it calls the function."""

    def __init__(
        self, function: Callable[..., Any], variables: Any, output: Any, waits: Sequence[Wait[Any]], **options: Any
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.variables = variables
        self.output = output
        self.waits: Dict[str, Wait[Any]] = {each.name: each for each in waits}
        self.secrets: Sequence[str] = list(options.get("secrets") or ())
        self.settings: Dict[str, Any] = dict(options.pop("settings", None) or {})
        self.id: str = options["id"]
        self.version: str = options["version"]
        self.time_limit_seconds: float = options["timeLimitSeconds"]
        self.retry: Retry = options["retry"]
        self._options = options
        self._takes_variables = len(inspect.signature(function).parameters) > 1

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def execute(self, run: Run, variables: Any) -> Any:
        """Calls the function with variables from JSON, and returns its result as JSON."""
        arguments = [self._decode(run, variables)] if self._takes_variables else []
        if inspect.iscoroutinefunction(self.function):
            from .async_run import execute_async

            result = execute_async(self.function, run, arguments)
        else:
            result = self.function(run, *arguments)
        return _encode_output(result)

    def _decode(self, run: Run, variables: Any) -> Any:
        drawn: Drawn = {}
        decoded = decode(variables, self.variables, "/variables", drawn)
        if not drawn:
            return decoded
        # Later attempts and parts must get what the factories have made for the first one.
        recorded = run.record(DEFAULT_VALUES, drawn)
        return decode(insert_drawn(variables, recorded, "/variables"), self.variables, "/variables")

    def definition(self) -> Dict[str, Any]:
        """The workflow as a worker registers it. :raises SchemaError: if a type has no JSON Schema."""
        definition: Dict[str, Any] = {"variables": self._schema("variables", self.variables)}
        if definition["variables"].get("type") != "object":
            raise SchemaError(f"The variables of {self.id} must be an object: use a dataclass, for example.")
        if self.output is not Any:
            definition["output"] = self._schema("output", self.output, closed=False, serialized=True)
        if self.waits:
            definition["waits"] = {name: self._describe_wait(wait) for name, wait in self.waits.items()}
        if self.settings:
            definition["settings"] = {name: self._schema(f"setting {name}", each) for name, each in self.settings.items()}
        for name, value in self._options.items():
            if value is not None:
                definition[name] = _options_to_json(value) if dataclasses.is_dataclass(value) else value
        return definition

    def _describe_wait(self, wait: Wait[Any]) -> Dict[str, Any]:
        given = {"schema": self._schema(f'wait "{wait.name}"', wait.type), "title": wait.title, "description": wait.description}
        return {name: value for name, value in given.items() if value is not None}

    def _schema(self, subject: str, hint: Any, **direction: bool) -> JsonSchema:
        try:
            return to_schema(hint, **direction)
        except SchemaError as error:
            raise SchemaError(f"The {subject} of workflow {self.id}: {error}") from error


def _encode_output(result: Any) -> Any:
    try:
        return to_json(result, "The output", secrets=False)
    except InvalidValue as error:
        raise OutputInvalid(error.pointer, error.detail) from None
    except ValueError as error:
        raise OutputInvalid("", str(error)) from None


if TYPE_CHECKING:

    class _Decorator(Protocol):
        @overload
        def __call__(self, function: Callable[[AsyncRun], Coroutine[Any, Any, O]]) -> Workflow[None, O]: ...

        @overload
        def __call__(self, function: Callable[[AsyncRun, V], Coroutine[Any, Any, O]]) -> Workflow[V, O]: ...

        @overload
        def __call__(self, function: Callable[[Run], O]) -> Workflow[None, O]: ...

        @overload
        def __call__(self, function: Callable[[Run, V], O]) -> Workflow[V, O]: ...


def workflow(
    *,
    id: str,
    version: str,
    title: Optional[str] = None,
    description: Optional[str] = None,
    variables: Any = None,
    output: Any = None,
    waits: Union[Sequence[Wait[Any]], Mapping[str, Any]] = (),
    secrets: Sequence[str] = (),
    settings: Mapping[str, Any] = {},
    time_limit_seconds: float = 60,
    retry: Union[Retry, int] = Retry(),
    concurrency: Optional[Concurrency] = None,
    throttle: Optional[Throttle] = None,
    deprecated: bool = False,
) -> _Decorator:
    """Makes a function a workflow. The function gets a :class:`Run` and the variables; an ``async def`` gets an
    :class:`AsyncRun`.

    :param id: 1 to 128 letters, digits, dots, underscores and hyphens, unique among the workflows of the account.
    :param version: a change that breaks callers needs a higher major version.
    :param description: for callers. The function's docstring by default.
    :param variables: a type or a JSON Schema. By default, the type hint of the function's second parameter.
    :param output: a type or a JSON Schema. By default, the type hint of the function's result.
    :param waits: the answers that runs may wait for: ``Wait`` objects, or types and JSON Schemas by name.
    :param secrets: the names of the account's secrets that runs get as ``run.secrets``. Runs wait for a missing one.
    :param settings: the account's settings that runs get as ``run.settings``: types or JSON Schemas by name.
    :param time_limit_seconds: of an attempt; time spent waiting does not count.
    :param retry: when failed attempts are repeated, or how many attempts there are at most.
    """
    if isinstance(waits, Mapping):
        waits = [each if isinstance(each, Wait) else Wait(name, each) for name, each in waits.items()]

    def decorate(function: Callable[..., Any]) -> Workflow[Any, Any]:
        parameters = list(inspect.signature(function).parameters)
        if not 1 <= len(parameters) <= 2:
            raise TypeError(f"{function.__qualname__} must take a run and its variables.")
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(f"{function.__qualname__} yields. A workflow returns its output.")
        # Types in TYPE_CHECKING blocks cannot be resolved. They matter only if they are used.
        hints = resolve_hints(function) if variables is None or output is None else {}
        empty = {"type": "object", "properties": {}, "additionalProperties": False}
        _check_run(function, hints.get(parameters[0]))
        inferred = hints.get(parameters[1], {"type": "object"}) if len(parameters) == 2 else empty
        return Workflow(
            function,
            inferred if variables is None else variables,
            hints.get("return", Any) if output is None else output,
            waits,
            id=id,
            version=version,
            title=title,
            description=inspect.getdoc(function) if description is None else description,
            secrets=list(secrets) or None,
            settings=settings,
            timeLimitSeconds=time_limit_seconds,
            retry=Retry(retry) if isinstance(retry, int) else retry,
            concurrency=concurrency,
            throttle=throttle,
            deprecated=deprecated or None,
        )

    return decorate


def _check_run(function: Callable[..., Any], hint: Any) -> None:
    expected = "AsyncRun" if inspect.iscoroutinefunction(function) else "Run"
    given = getattr(hint, "__name__", None)
    if given in ("Run", "AsyncRun") and given != expected:
        raise TypeError(f"{function.__qualname__} gets an {expected}: write `{expected}` in place of `{given}`.")


def decode_settings(workflow: Workflow[Any, Any], settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Settings from JSON, in the types that the workflow declares."""
    return {name: decode(value, workflow.settings.get(name, Any), f"/settings/{name}") for name, value in settings.items()}


def _options_to_json(options: Any) -> Dict[str, Any]:
    return {camel_case(each.name): getattr(options, each.name) for each in dataclasses.fields(options)}
