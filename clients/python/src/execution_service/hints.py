"""What type hints are made of, for the schemas and the values of them."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import functools
import inspect
import sys
import types
import typing
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from .errors import SchemaError

SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
LISTS = (list, tuple, collections.deque, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection)
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

#: Classes that make the same value each time. Others, such as ``uuid4``, are called for each object.
_CONSTANT_FACTORIES = (list, dict, set, frozenset, tuple, str, int, float, bool)


class Member(NamedTuple):
    """A member of a dataclass or a TypedDict."""

    name: str
    hint: Any
    is_required: bool
    #: Values to omit have none, and neither have those that a factory makes.
    has_default: bool = False
    default: Any = None
    factory: Optional[Callable[[], Any]] = None


def normalize(hint: Any) -> Any:
    """The hint without what says nothing about its values: ``NewType``, ``type X = …``, ``Final``."""
    while True:
        if hint is None:
            return type(None)
        if hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif typing.get_origin(hint) is typing.Final:
            hint = typing.get_args(hint)[0]
        else:
            return hint


def is_annotated(hint: Any) -> bool:
    return hasattr(hint, "__metadata__") and hasattr(hint, "__origin__")


def is_union(origin: Any) -> bool:
    return origin is Union or origin is getattr(types, "UnionType", Union)


def is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def members_of(hint: Any) -> List[Member]:
    if not dataclasses.is_dataclass(hint):
        hints = resolve_hints(hint)
        required: Set[str] = getattr(hint, "__required_keys__", set(hints))
        return [Member(name, *_required(each, name in required)) for name, each in hints.items()]
    pseudos: Dict[str, Any] = hint.__dataclass_fields__
    for pseudo in pseudos.values():
        if getattr(getattr(pseudo, "_field_type", None), "name", "") == "_FIELD_INITVAR":
            raise SchemaError(f"{getattr(hint, '__qualname__', hint)}.{pseudo.name} is an InitVar, whose value an object does not keep. Make it a field.")
    hints = resolve_hints(hint)
    return [_member_of_field(field, hints[field.name]) for field in dataclasses.fields(hint) if field.init]


def _member_of_field(field: Any, hint: Any) -> Member:
    if field.default is not dataclasses.MISSING:
        return Member(field.name, hint, False, True, field.default)
    factory = field.default_factory
    if factory is dataclasses.MISSING:
        return Member(field.name, hint, True)
    if factory in _CONSTANT_FACTORIES:
        return Member(field.name, hint, False, True, factory())
    return Member(field.name, hint, False, factory=factory)


def _required(hint: Any, is_required: bool) -> Tuple[Any, bool]:
    """The type without Required and NotRequired, which __required_keys__ misses in annotations that are strings."""
    kind = getattr(typing.get_origin(hint), "_name", None)
    if kind not in ("Required", "NotRequired", "ReadOnly"):
        return hint, is_required
    return _required(typing.get_args(hint)[0], is_required if kind == "ReadOnly" else kind == "Required")


def resolve_hints(hint: Any) -> Dict[str, Any]:
    """The type hints of a class or a function, also those that are written as strings."""
    try:
        return typing.get_type_hints(hint, include_extras=True)
    except NameError as error:
        raise SchemaError(
            f"The type hints of {hint.__qualname__} cannot be resolved: {error}. Define its types at the level of the module."
        ) from error
    except TypeError as error:
        if sys.version_info < (3, 10) and "|" in str(error):
            raise SchemaError(
                f"The type hints of {hint.__qualname__} use X | Y, which needs Python 3.10: write Optional or Union."
            ) from error
        raise SchemaError(f"The type hints of {hint.__qualname__} cannot be resolved: {error}") from error


def return_hint(function: Callable[..., Any]) -> Any:
    """The type that a function returns by its annotation; ``None`` without one."""
    while isinstance(function, functools.partial):
        function = function.func
    if not hasattr(function, "__annotations__") and hasattr(type(function), "__call__"):
        function = type(function).__call__
    if "return" not in getattr(function, "__annotations__", {}):
        return None
    try:
        hint = resolve_hints(function)["return"]
    except (SchemaError, AttributeError):
        return None
    return None if hint is Any or isinstance(hint, typing.TypeVar) else hint


def docstring(hint: Any) -> str:
    text = inspect.cleandoc(hint.__dict__.get("__doc__") or "")
    # A dataclass without a docstring gets its signature as one.
    is_signature = isinstance(hint, type) and dataclasses.is_dataclass(hint) and text.startswith(f"{hint.__name__}(")
    return "" if is_signature else text


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
