"""The decorator that makes a function a workflow, and the options of a workflow."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Mapping, Optional, Sequence, Type, TypeVar, Union

from .errors import SchemaError
from .schema import JsonSchema, decode, encode, resolve_hints, to_schema

if TYPE_CHECKING:
    from .run import Run

V = TypeVar("V")
O = TypeVar("O")
T = TypeVar("T")


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

    def definition(self) -> Dict[str, Any]:
        given = {"schema": to_schema(self.type), "title": self.title, "description": self.description}
        return {name: value for name, value in given.items() if value is not None}


class Workflow(Generic[V, O]):
    """A function with what the service has to know of it. Calling it calls the function."""

    def __init__(
        self, function: Callable[[Run, V], O], variables: Any, output: Any, waits: Sequence[Wait[Any]], **options: Any
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

    def __call__(self, run: Run, variables: V) -> O:
        return self.function(run, variables)

    def execute(self, run: Run, variables: Any) -> Any:
        """Calls the function with variables from JSON, and returns its result as JSON."""
        if not self._takes_variables:
            result = self.function(run)  # type: ignore[call-arg]
        else:
            result = self.function(run, decode(variables, self.variables, "/variables"))
        return encode(result, self.output)

    def definition(self) -> Dict[str, Any]:
        """The workflow as a worker registers it."""
        definition: Dict[str, Any] = {"variables": to_schema(self.variables)}
        if definition["variables"].get("type") != "object":
            raise SchemaError(f"The variables of {self.id} must be an object: use a dataclass, for example.")
        if self.output is not Any:
            definition["output"] = to_schema(self.output, closed=False, serialized=True)
        if self.waits:
            definition["waits"] = {name: wait.definition() for name, wait in self.waits.items()}
        if self.settings:
            definition["settings"] = {name: to_schema(each) for name, each in self.settings.items()}
        for name, value in self._options.items():
            if value is not None:
                definition[name] = _options_to_json(value) if dataclasses.is_dataclass(value) else value
        return definition


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
) -> Callable[[Callable[[Run, V], O]], Workflow[V, O]]:
    """Makes a function a workflow. The function gets a :class:`Run` and the variables.

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

    def decorate(function: Callable[[Run, V], O]) -> Workflow[V, O]:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is async. A workflow is a plain function: use asyncio.run() inside.")
        parameters = list(inspect.signature(function).parameters)
        if not 1 <= len(parameters) <= 2:
            raise TypeError(f"{function.__qualname__} must take a run and its variables.")
        # Types in TYPE_CHECKING blocks cannot be resolved. They matter only if they are used.
        hints = resolve_hints(function) if variables is None or output is None else {}
        empty = {"type": "object", "properties": {}, "additionalProperties": False}
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


def decode_settings(workflow: Workflow[Any, Any], settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Settings from JSON, in the types that the workflow declares."""
    return {name: decode(value, workflow.settings.get(name, Any), f"/settings/{name}") for name, value in settings.items()}


def _options_to_json(options: Any) -> Dict[str, Any]:
    words = {f.name: f.name.split("_") for f in dataclasses.fields(options)}
    return {first + "".join(map(str.capitalize, rest)): getattr(options, n) for n, (first, *rest) in words.items()}
