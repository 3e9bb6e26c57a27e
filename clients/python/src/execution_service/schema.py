"""JSON Schemas (2020-12) of type hints."""

from __future__ import annotations

import dataclasses
import enum
import typing
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from .errors import InvalidValue, SchemaError
from .hints import (
    LISTS,
    MAPPINGS,
    SETS,
    Member,
    camel_case,
    docstring,
    is_annotated,
    is_typed_dict,
    is_union,
    members_of,
    normalize,
)
from .pydantic_types import is_pydantic, pydantic_schema
from .scalars import JsonSchema, can_be_unique, scalar_of
from .values import encode

_ADVICE = (
    "Use a dataclass, a TypedDict, a Pydantic model, an enum, a Literal, a list, a set, a dict with str as keys, a type of "
    "JSON, date, datetime, time, timedelta, Decimal, UUID, bytes, Path, or a dictionary that is a JSON Schema."
)


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
        schema = {camel_case(name): value for name, value in given.items() if value is not None}
        return {**schema, "writeOnly": True} if self.secret else schema


def to_schema(hint: Any, *, closed: bool = True, serialized: bool = False) -> JsonSchema:
    """The JSON Schema of a type. A dictionary is a schema already.

    :param closed: whether objects refuse other members.
    :param serialized: whether the schema is of what is written, rather than of what is read.
    :raises SchemaError: with the place in the type, the reason, and what to write.
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
    _remove_defaults_of_alternatives(schema, writer.definitions)
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
        hint = normalize(hint)
        if is_annotated(hint):
            return self._write_annotated(hint)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if is_union(origin):
            return self._write_union(arguments)
        if hint is Any or hint is object:
            return {}
        scalar = scalar_of(hint)
        if scalar:
            return dict(scalar.written if self._serialized and scalar.written else scalar.schema)
        if origin is typing.Literal:
            return {"enum": _encoded(arguments, hint)}
        if is_pydantic(hint):
            return self._write_pydantic(hint)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return {"enum": _encoded(hint, hint.__qualname__)}
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) or is_typed_dict(hint):
            return self._write_named(hint)
        return self._write_container(hint, origin or hint, arguments)

    def _write_annotated(self, hint: Any) -> JsonSchema:
        schema = self._write_pydantic(hint) if is_pydantic(hint) else self.write(hint.__origin__)
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
            count = 0 if arguments == ((),) else len(arguments)  # Python 3.9 and 3.10 write Tuple[()] so.
            items = [self.write(each) for each in arguments[:count]]
            fixed: JsonSchema = {"prefixItems": items} if items else {}
            return {"type": "array", **fixed, "items": False, "minItems": count, "maxItems": count}
        if origin in SETS:
            return self._write_set(hint, arguments)
        if origin in LISTS:
            return {"type": "array", "items": self._place("[]", arguments[0])} if arguments else {"type": "array"}
        if origin in MAPPINGS:
            if arguments and normalize(arguments[0]) is not str:
                raise SchemaError(f"{hint!r} has no JSON Schema: the keys of a JSON object are str.")
            values = self._place("{}", arguments[1]) if arguments else {}
            return {"type": "object", "additionalProperties": values or True}
        raise SchemaError(f"{hint!r} has no JSON Schema. {_ADVICE}")

    def _write_set(self, hint: Any, arguments: Tuple[Any, ...]) -> JsonSchema:
        if not arguments:
            return {"type": "array"}
        item = normalize(arguments[0])
        kind = typing.get_origin(item) or item
        is_frozen = not dataclasses.is_dataclass(item) or getattr(item, "__hash__", None) is not None
        if kind in (list, dict, set) or is_typed_dict(item) or not is_frozen:
            raise SchemaError(f"{hint!r} has items that a set cannot have, because they can change. Use a list.")
        items = self._place("[]", item)
        return {"type": "array", "items": items, **({"uniqueItems": True} if can_be_unique(items) else {})}

    def _write_pydantic(self, hint: Any) -> JsonSchema:
        schema, definitions = pydantic_schema(hint, self._serialized)
        if any(self.definitions.get(name, each) != each for name, each in definitions.items()):
            # Another class has the name. All get new ones, since a definition may refer to any other.
            names = {name: self._free_name(name, definitions) for name in definitions}
            definitions = {names[name]: _renamed(each, names) for name, each in definitions.items()}
            schema = _renamed(schema, names)
        self.definitions.update(definitions)
        return schema

    def _free_name(self, name: str, others: Mapping[str, Any] = {}) -> str:
        numbered = (name if number == 1 else f"{name}{number}" for number in range(1, 1_000_000))
        return next(each for each in numbered if each not in self.definitions and (each == name or each not in others))

    def _write_named(self, hint: Any) -> JsonSchema:
        name = self._names.get(hint)
        if name is None:
            name = self._names[hint] = self._free_name(hint.__name__)
            self.definitions[name] = {}
            self.definitions[name].update(self._write_members(hint))
        return {"$ref": f"#/$defs/{name}"}

    def _write_members(self, hint: Any) -> JsonSchema:
        description = docstring(hint)
        schema: JsonSchema = {"type": "object", **({"description": description} if description else {})}
        members = members_of(hint)
        schema["properties"] = {each.name: self._write_member(hint, each) for each in members}
        required = [each.name for each in members if each.is_required]
        if required:
            schema["required"] = required
        if self._closed:
            schema["additionalProperties"] = False
        return schema

    def _write_member(self, owner: Any, member: Member) -> JsonSchema:
        place = f"{owner.__qualname__}.{member.name}"
        schema = self._place(place, member.hint)
        if not member.has_default:
            return schema
        try:
            return {**schema, "default": encode(member.default)}
        except InvalidValue as error:
            raise SchemaError(f"The default of {place} cannot be JSON: {error}") from error

    def _place(self, place: str, hint: Any) -> JsonSchema:
        try:
            return self.write(hint)
        except SchemaError as error:
            raise SchemaError(f"{place}{'' if place in ('[]', '{}') else ': '}{error}") from error


def _encoded(values: Any, place: Any) -> List[Any]:
    try:
        return [encode(each) for each in values]
    except InvalidValue as error:
        raise SchemaError(f"{place} has a value that cannot be JSON: {error}") from error


def _remove_defaults_of_alternatives(schema: JsonSchema, definitions: Mapping[str, JsonSchema]) -> None:
    """Below ``anyOf``, a validator fills in no defaults, and the service refuses what it would ignore. Readers fill them in."""
    seen: Set[str] = set()

    def visit(each: Any, is_alternative: bool) -> None:
        if not isinstance(each, dict):
            return
        if is_alternative:
            each.pop("default", None)
        name = str(each.get("$ref", "")).rpartition("/")[2]
        if is_alternative and name in definitions and name not in seen:
            seen.add(name)
            visit(definitions[name], True)
        for keyword, value in list(each.items()):
            if keyword in ("properties", "patternProperties"):
                for member in value.values():
                    visit(member, is_alternative)
            elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
                for member in value:
                    visit(member, is_alternative or keyword in ("anyOf", "oneOf"))
            elif keyword in ("items", "additionalProperties"):
                visit(value, is_alternative)

    for each in (schema, *definitions.values()):
        visit(each, False)


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {name: _renamed(each, names) for name, each in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        name = reference[len("#/$defs/") :]
        renamed["$ref"] = f"#/$defs/{names.get(name, name)}"
    return renamed

