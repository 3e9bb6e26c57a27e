"""Validates JSON by the keywords that type hints, ``Field`` and Pydantic write. The service checks all others, too."""

from __future__ import annotations

import decimal
import json
import re
from typing import Any, Dict

from .errors import InvalidValue

_TYPES: Dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def _is_multiple(value: Any, divisor: Any) -> bool:
    # As people write numbers: the binary 4.35 is no multiple of the binary 0.01.
    number, step = decimal.Decimal(str(value)), decimal.Decimal(str(divisor))
    with decimal.localcontext() as context:
        context.prec = 700  # Of any two doubles.
        return number % step == 0


_NUMBER_CHECKS: Dict[str, Any] = {
    "minimum": (lambda value, bound: value >= bound, "must be >= {}"),
    "maximum": (lambda value, bound: value <= bound, "must be <= {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "must be > {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "must be < {}"),
    "multipleOf": (_is_multiple, "must be a multiple of {}"),
}
_LENGTH_CHECKS: Dict[str, Any] = {
    "minLength": (lambda value, bound: len(value) >= bound, str, "must have at least {} characters"),
    "maxLength": (lambda value, bound: len(value) <= bound, str, "must have at most {} characters"),
    "pattern": (lambda value, pattern: re.search(pattern, value) is not None, str, "must match {}"),
    "minItems": (lambda value, bound: len(value) >= bound, list, "must have at least {} items"),
    "maxItems": (lambda value, bound: len(value) <= bound, list, "must have at most {} items"),
    "uniqueItems": (lambda value, unique: not unique or _are_unique(value), list, "must not have the same item twice"),
}


def _are_unique(items: Any) -> bool:
    return len({json.dumps(each, sort_keys=True) for each in items}) == len(items)


def check_number(value: Any, schema: Any, pointer: str) -> None:
    """:raises InvalidValue: if a number is out of the bounds of a schema."""
    for keyword, (fits, detail) in _NUMBER_CHECKS.items():
        if keyword in schema and not fits(value, _as(value, schema[keyword])):
            raise InvalidValue(pointer, detail.format(schema[keyword]))


def _as(value: Any, bound: Any) -> Any:
    return decimal.Decimal(str(bound)) if isinstance(value, decimal.Decimal) else bound


def target_of(schema: Any, root: Any) -> Any:
    """The schema to which it refers."""
    while isinstance(schema, dict) and "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].split("/")[1:]:
            target = target[part.replace("~1", "/").replace("~0", "~")]
        schema = target
    return schema


def validate(value: Any, schema: Any, pointer: str = "", root: Any = None) -> None:
    """:raises InvalidValue: if the value does not match the schema."""
    root = schema if root is None else root
    schema = target_of(schema, root)
    if not isinstance(schema, dict):
        return
    names = schema.get("type", [])
    allowed = [names] if isinstance(names, str) else names
    if allowed and not any(_is_type(value, name) for name in allowed):
        raise InvalidValue(pointer, f"must be {' or '.join(allowed)}")
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and value not in choices:
        raise InvalidValue(pointer, f"must be one of {', '.join(map(repr, choices))}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        check_number(value, schema, pointer)
    for keyword, (fits, kind, detail) in _LENGTH_CHECKS.items():
        if keyword in schema and isinstance(value, kind) and not fits(value, schema[keyword]):
            raise InvalidValue(pointer, detail.format(schema[keyword]))
    for each in schema.get("allOf", ()):
        validate(value, each, pointer, root)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and not any(_matches(value, each, root) for each in schema[keyword]):
            raise InvalidValue(pointer, "matches none of the schemas that it may match")
    if isinstance(value, dict):
        _validate_members(value, schema, pointer, root)
    if isinstance(value, list):
        fixed = schema.get("prefixItems", [])
        for index, each in enumerate(value):
            validate(each, fixed[index] if index < len(fixed) else schema.get("items"), f"{pointer}/{index}", root)


def _validate_members(value: Dict[str, Any], schema: Dict[str, Any], pointer: str, root: Any) -> None:
    for name in schema.get("required", ()):
        if name not in value:
            raise InvalidValue(f"{pointer}/{name}", "is required")
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, each in value.items():
        if name in properties:
            validate(each, properties[name], f"{pointer}/{name}", root)
        elif others is False:
            raise InvalidValue(f"{pointer}/{name}", "is unknown")
        else:
            validate(each, others, f"{pointer}/{name}", root)


def _is_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _matches(value: Any, schema: Any, root: Any) -> bool:
    try:
        validate(value, schema, "", root)
        return True
    except InvalidValue:
        return False
