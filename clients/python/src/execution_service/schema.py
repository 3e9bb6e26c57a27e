"""JSON Schemas from type hints, and values of those types from JSON and to JSON."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import functools
import inspect
import math
import sys
import types
import typing
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple, Union

from .errors import InvalidValue, SchemaError

JsonSchema = Dict[str, Any]

_MISSING = object()
_SIMPLE: Mapping[Any, JsonSchema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    uuid.UUID: {"type": "string", "format": "uuid"},
}
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


@dataclasses.dataclass(frozen=True)
class Field:
    """What a type hint cannot say, in ``Annotated``: ``token: Annotated[str, Field(secret=True, min_length=8)]``."""

    title: Optional[str] = None
    description: Optional[str] = None
    examples: Optional[List[Any]] = None
    #: A secret is encrypted at rest, and masked in responses, logs and errors.
    secret: bool = False
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    exclusive_minimum: Optional[float] = None
    exclusive_maximum: Optional[float] = None
    multiple_of: Optional[float] = None
    min_length: Optional[int] = None
    max_length: Optional[int] = None
    pattern: Optional[str] = None
    format: Optional[str] = None
    min_items: Optional[int] = None
    max_items: Optional[int] = None

    def keywords(self) -> JsonSchema:
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "secret"}
        schema = {_camel_case(name): value for name, value in given.items() if value is not None}
        return {**schema, "writeOnly": True} if self.secret else schema


def to_schema(hint: Any, *, closed: bool = True, serialized: bool = False) -> JsonSchema:
    """The JSON Schema (2020-12) of a type. A dictionary is a schema already.

    :param closed: whether objects refuse other members.
    :param serialized: whether the schema is of what a Pydantic model writes, rather than reads.
    """
    if isinstance(hint, dict):
        return hint
    writer = _SchemaWriter(closed, serialized)
    schema = writer.write(hint)
    while set(schema) == {"$ref"} and schema["$ref"].startswith("#/$defs/"):
        name = schema["$ref"][len("#/$defs/") :]
        schema = dict(writer.definitions[name])
        if not writer.is_recursive(name):
            del writer.definitions[name]
    return {**schema, "$defs": writer.definitions} if writer.definitions else schema


class _SchemaWriter:
    def __init__(self, closed: bool, serialized: bool) -> None:
        self.definitions: Dict[str, JsonSchema] = {}
        self._names: Dict[Any, str] = {}
        self._closed = closed
        self._serialized = serialized

    def is_recursive(self, name: str) -> bool:
        return f"'#/$defs/{name}'" in repr(self.definitions)

    def write(self, hint: Any) -> JsonSchema:
        if isinstance(hint, dict):
            return hint
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if _is_annotated(hint):
            return self._write_annotated(hint)
        if _is_union(origin):
            return self._write_union(arguments)
        if hint is Any or hint is object:
            return {}
        if hint is None:
            hint = type(None)
        if isinstance(hint, collections.abc.Hashable) and hint in _SIMPLE:
            return dict(_SIMPLE[hint])
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if _is_pydantic(hint):
            return self._write_pydantic(hint)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return {"enum": [each.value for each in hint]}
        if dataclasses.is_dataclass(hint) or _is_typed_dict(hint):
            return self._write_named(hint)
        return self._write_container(hint, origin or hint, arguments)

    def _write_annotated(self, hint: Any) -> JsonSchema:
        schema = self.write(hint.__origin__)
        added: JsonSchema = {}
        for each in hint.__metadata__:
            added.update(each.keywords() if isinstance(each, Field) else each if isinstance(each, dict) else {})
        return {**schema, **added}

    def _write_union(self, arguments: Tuple[Any, ...]) -> JsonSchema:
        schemas = [self.write(each) for each in arguments]
        if all(set(each) == {"type"} and isinstance(each["type"], str) for each in schemas):
            return {"type": [each["type"] for each in schemas]}
        return {"anyOf": schemas}

    def _write_container(self, hint: Any, origin: Any, arguments: Tuple[Any, ...]) -> JsonSchema:
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            count = len(arguments)
            items = [self.write(each) for each in arguments]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": count, "maxItems": count}
        if origin in _LISTS:
            return {"type": "array", "items": self.write(arguments[0])} if arguments else {"type": "array"}
        if origin in _MAPPINGS:
            if arguments and arguments[0] is not str:
                raise SchemaError(f"{hint!r} has no JSON Schema: the keys of a JSON object are str.")
            values = self.write(arguments[1]) if arguments else {}
            return {"type": "object", "additionalProperties": values or True}
        raise SchemaError(
            f"{hint!r} has no JSON Schema. Use a dataclass, a TypedDict, a Pydantic model, an enum, "
            "a type of JSON, date, datetime, UUID, or a dictionary that is a JSON Schema."
        )

    def _write_pydantic(self, model: Any) -> JsonSchema:
        schema: JsonSchema = model.model_json_schema(mode="serialization" if self._serialized else "validation")
        self.definitions.update(schema.pop("$defs", {}))
        return schema

    def _write_named(self, hint: Any) -> JsonSchema:
        name = self._names.get(hint)
        if name is None:
            name = hint.__name__
            if name in self.definitions:
                name = f"{hint.__module__}.{hint.__qualname__}"
            self._names[hint] = name
            self.definitions[name] = {}
            self.definitions[name].update(self._write_members(hint))
        return {"$ref": f"#/$defs/{name}"}

    def _write_members(self, hint: Any) -> JsonSchema:
        schema: JsonSchema = {"type": "object"}
        description = _docstring(hint)
        if description:
            schema["description"] = description
        properties: Dict[str, JsonSchema] = {}
        required: List[str] = []
        for name, member, default in _members(hint):
            properties[name] = self.write(member)
            if default is _MISSING:
                required.append(name)
            elif default is not _OPTIONAL:
                properties[name] = {**properties[name], "default": encode(default, member)}
        schema["properties"] = properties
        if required:
            schema["required"] = required
        if self._closed:
            schema["additionalProperties"] = False
        return schema


#: The default of a member of a TypedDict that may be absent.
_OPTIONAL = object()


def _members(hint: Any) -> List[Tuple[str, Any, Any]]:
    """The name, the type and the default of each member."""
    hints = resolve_hints(hint)
    if not dataclasses.is_dataclass(hint):
        required: Set[str] = getattr(hint, "__required_keys__", set(hints))
        return [(name, *_required(each, name in required)) for name, each in hints.items()]
    members = []
    for field in dataclasses.fields(hint):
        default: Any = _MISSING
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.init:
            members.append((field.name, hints[field.name], default))
    return members


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
        raise


def decode(value: Any, hint: Any, pointer: str = "") -> Any:
    """A value of the type from JSON. :raises InvalidValue: if it does not match."""
    if hint is Any or hint is object or isinstance(hint, dict):
        return value
    if _is_annotated(hint):
        return decode(value, hint.__origin__, pointer)
    if hint is None:
        hint = type(None)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if _is_union(origin):
        return _decode_union(value, arguments, pointer)
    if origin is typing.Literal:
        if any(value == each and type(value) is type(each) for each in arguments):
            return value
        raise InvalidValue(pointer, f"must be one of {', '.join(map(repr, arguments))}")
    if _is_pydantic(hint):
        return hint.model_validate(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _convert(hint, value, pointer, f"must be one of {', '.join(repr(each.value) for each in hint)}")
    if dataclasses.is_dataclass(hint) or _is_typed_dict(hint):
        return _decode_members(value, hint, pointer)
    if isinstance(hint, collections.abc.Hashable) and hint in _SIMPLE:
        return _decode_simple(value, hint, pointer)
    return _decode_container(value, origin or hint, arguments, pointer)


def _decode_simple(value: Any, hint: Any, pointer: str) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and is_number:
        return float(value)
    if hint is int and is_number and float(value).is_integer():
        return int(value)
    if hint in (str, bool, type(None)) and isinstance(value, hint):
        return value
    if isinstance(value, str):
        if hint is datetime.datetime:
            # fromisoformat knows no Z before Python 3.11.
            text = value[:-1] + "+00:00" if value[-1:] in ("Z", "z") else value
            return _convert(datetime.datetime.fromisoformat, text, pointer, "must be a date and time (RFC 3339)")
        if hint is datetime.date:
            return _convert(datetime.date.fromisoformat, value, pointer, "must be a date such as 2026-11-20")
        if hint is uuid.UUID:
            return _convert(uuid.UUID, value, pointer, "must be a UUID")
    kind = _SIMPLE[hint]["type"]
    raise InvalidValue(pointer, f"must be {'an' if kind == 'integer' else 'a'} {kind}, not {type(value).__name__}")


def _decode_union(value: Any, arguments: Tuple[Any, ...], pointer: str) -> Any:
    failures = []
    # An integer must not become a float because float comes first.
    for hint in sorted(arguments, key=lambda each: each is not type(value)):
        try:
            return decode(value, hint, pointer)
        except ValueError as error:
            failures.append(error)
    present = [each for each in arguments if each is not type(None)]
    raise failures[-1] if len(present) == 1 else InvalidValue(pointer, "matches none of the types that it may have")


def _decode_members(value: Any, hint: Any, pointer: str) -> Any:
    if not isinstance(value, dict):
        raise InvalidValue(pointer, f"must be an object, not {type(value).__name__}")
    members = {}
    for name, member, default in _members(hint):
        if name in value:
            members[name] = decode(value[name], member, f"{pointer}/{name}")
        elif default is _MISSING:
            raise InvalidValue(f"{pointer}/{name}", "is required")
    # What the service lets through, such as a member that a later version adds, a dataclass cannot have.
    decoded: Any = hint(**members) if dataclasses.is_dataclass(hint) and isinstance(hint, type) else {**value, **members}
    return decoded


def _decode_container(value: Any, origin: Any, arguments: Tuple[Any, ...], pointer: str) -> Any:
    if origin in _MAPPINGS:
        if not isinstance(value, dict):
            raise InvalidValue(pointer, f"must be an object, not {type(value).__name__}")
        member = arguments[1] if arguments else Any
        return {name: decode(each, member, f"{pointer}/{name}") for name, each in value.items()}
    if origin not in _LISTS:
        raise SchemaError(f"{origin!r} cannot be read from JSON.")
    if not isinstance(value, list):
        raise InvalidValue(pointer, f"must be an array, not {type(value).__name__}")
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(arguments) != len(value):
            raise InvalidValue(pointer, f"must have {len(arguments)} items")
        return tuple(decode(each, hint, f"{pointer}/{i}") for i, (each, hint) in enumerate(zip(value, arguments)))
    item = arguments[0] if arguments else Any
    items = [decode(each, item, f"{pointer}/{index}") for index, each in enumerate(value)]
    return tuple(items) if origin is tuple else items


def encode(value: Any, hint: Any = Any, pointer: str = "") -> Any:
    """A value as JSON has it. :raises InvalidValue: if it cannot be JSON."""
    if value is None or isinstance(value, (str, bool)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return encode(value.value, Any, pointer)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise InvalidValue(pointer, f"{value} is no number of JSON")
    if _is_pydantic(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value):
        return {f.name: encode(getattr(value, f.name), Any, f"{pointer}/{f.name}") for f in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InvalidValue(pointer, f"the key {name!r} is no str, as the keys of a JSON object are")
        return {name: encode(each, Any, f"{pointer}/{name}") for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(each, Any, f"{pointer}/{index}") for index, each in enumerate(value)]
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise InvalidValue(pointer, "the datetime has no time zone: use datetime.now(timezone.utc), for example")
        return value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise InvalidValue(pointer, f"{type(value).__name__} cannot be JSON")


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
    except (SchemaError, TypeError, AttributeError):
        return None
    return None if hint is Any or isinstance(hint, typing.TypeVar) else hint


def needs_hint(value: Any) -> bool:
    """Whether JSON alone does not say which type the value had."""
    if isinstance(value, (list, tuple)):
        return any(map(needs_hint, value))
    if isinstance(value, dict):
        return any(map(needs_hint, value.values()))
    return not (value is None or isinstance(value, (str, bool, int, float)))


def _convert(constructor: Callable[[Any], Any], value: Any, pointer: str, detail: str) -> Any:
    try:
        return constructor(value)
    except ValueError:
        raise InvalidValue(pointer, detail) from None


def _is_annotated(hint: Any) -> bool:
    return hasattr(hint, "__metadata__") and hasattr(hint, "__origin__")


def _is_union(origin: Any) -> bool:
    return origin is Union or origin is getattr(types, "UnionType", Union)


def _is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def _is_pydantic(hint: Any) -> bool:
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def _required(hint: Any, default: bool) -> Tuple[Any, Any]:
    """The type without Required and NotRequired, which __required_keys__ misses in annotations that are strings."""
    kind = getattr(typing.get_origin(hint), "_name", None)
    if kind not in ("Required", "NotRequired", "ReadOnly"):
        return hint, _MISSING if default else _OPTIONAL
    return _required(typing.get_args(hint)[0], default if kind == "ReadOnly" else kind == "Required")


def _docstring(hint: Any) -> str:
    text = inspect.cleandoc(hint.__dict__.get("__doc__") or "")
    # A dataclass without a docstring gets its signature as one.
    is_signature = isinstance(hint, type) and dataclasses.is_dataclass(hint) and text.startswith(f"{hint.__name__}(")
    return "" if is_signature else text


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
