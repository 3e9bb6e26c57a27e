"""Types of Pydantic 2, which describes, reads and writes them itself. It is imported only by an author who uses it."""

from __future__ import annotations

import functools
import json
import typing
from typing import Any, Dict, List, Tuple

from .errors import InvalidValue, SchemaError
from .hints import is_annotated
from .scalars import DECIMAL_PATTERN, DURATION_PATTERN, TIME_PATTERN, JsonSchema, can_be_unique

#: Those of JSON Schema 2020-12 that the service checks. Pydantic writes others, which say nothing to a validator.
_FORMATS = frozenset(
    "date time date-time duration uri uri-reference uri-template email hostname ipv4 ipv6 regex uuid json-pointer "
    "relative-json-pointer byte int32 int64 float double password binary".split()
)


def is_pydantic(hint: Any) -> bool:
    """Whether Pydantic has to read the hint: its classes, its dataclasses, and constraints in ``Annotated``."""
    if is_annotated(hint):
        return is_pydantic(hint.__origin__) or any(map(_is_constraint, hint.__metadata__))
    if not isinstance(hint, type) or typing.get_origin(hint) is not None:
        return False
    return "__pydantic_core_schema__" in vars(hint) or hasattr(hint, "__get_pydantic_core_schema__") or _is_of_package(hint)


def _is_constraint(metadata: Any) -> bool:
    return _is_of_package(type(metadata)) or hasattr(metadata, "__get_pydantic_core_schema__")


def _is_of_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("pydantic", "annotated_types")


@functools.lru_cache(maxsize=None)
def _cached_adapter(hint: Any) -> Any:
    try:
        from pydantic import TypeAdapter
    except ImportError as error:
        raise SchemaError(f"{hint!r} needs Pydantic 2, which cannot be imported: {error}") from error
    return TypeAdapter(hint)


def _adapter(hint: Any) -> Any:
    try:
        return _cached_adapter(hint)
    except TypeError:
        return _cached_adapter.__wrapped__(hint)  # Its metadata cannot be hashed.


@functools.lru_cache(maxsize=1)
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Replaces what the service would refuse: patterns that take long, durations with fractions, times without offset."""

        def decimal_schema(self, schema: Any) -> JsonSchema:
            written = super().decimal_schema(schema)
            for each in written.get("anyOf", [written]):
                if each.get("type") == "string":
                    each["pattern"] = DECIMAL_PATTERN
            return written

        def timedelta_schema(self, schema: Any) -> JsonSchema:
            written = super().timedelta_schema(schema)
            return {"type": "string", "pattern": DURATION_PATTERN} if written.get("format") == "duration" else written

        def time_schema(self, schema: Any) -> JsonSchema:
            return {"type": "string", "pattern": TIME_PATTERN}

    return Generator


def pydantic_schema(hint: Any, serialized: bool) -> Tuple[JsonSchema, Dict[str, JsonSchema]]:
    """The schema and its definitions. :raises SchemaError: if Pydantic has none, with its reason."""
    from pydantic.errors import PydanticUserError

    mode = "serialization" if serialized else "validation"
    try:
        schema: JsonSchema = _adapter(hint).json_schema(mode=mode, schema_generator=_generator())
    except (PydanticUserError, NameError) as error:
        name = getattr(hint, "__qualname__", repr(hint))
        raise SchemaError(f"Pydantic has no JSON Schema for {name}: {str(error).splitlines()[0]}") from error
    _tidy(schema)
    definitions: Dict[str, JsonSchema] = schema.pop("$defs", {})
    return schema, definitions


def _tidy(schema: Any) -> None:
    """Removes what the service refuses: keywords of OpenAPI, formats that JSON Schema does not know, slow comparisons."""
    if isinstance(schema, list):
        for each in schema:
            _tidy(each)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("discriminator"), dict):
        del schema["discriminator"]
    if schema.get("uniqueItems") is True and not can_be_unique(schema.get("items")):
        del schema["uniqueItems"]
    if isinstance(schema.get("format"), str) and schema["format"] not in _FORMATS:
        # The file format of this service is written by its own name.
        if schema["format"] != "file":
            del schema["format"]
    for keyword, value in schema.items():
        if keyword in ("properties", "patternProperties", "$defs"):
            for each in value.values():
                _tidy(each)
        elif keyword not in ("default", "const", "enum", "examples"):
            _tidy(value)


def read_pydantic(value: Any, hint: Any, pointer: str) -> Any:
    from pydantic import ValidationError

    try:
        # From JSON, so that strict models take what JSON has for a date, a set or an enum.
        return _adapter(hint).validate_json(json.dumps(value))
    except ValidationError as error:
        # Without the input, which may be a secret.
        first, *others = error.errors(include_url=False, include_input=False)
        place = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in first["loc"])
        more = f" (and {len(others)} more)" if others else ""
        raise InvalidValue(pointer + place, first["msg"] + more) from None


def write_pydantic(value: Any, secrets: bool) -> Any:
    """:param secrets: whether to write the values of ``SecretStr`` and its like, which Pydantic masks."""
    adapter = _adapter(type(value))
    written = adapter.dump_python(value, mode="json", by_alias=True)
    return _reveal(written, adapter.dump_python(value, mode="python", by_alias=True)) if secrets else written


def _reveal(written: Any, value: Any) -> Any:
    if hasattr(value, "get_secret_value"):
        secret = value.get_secret_value()
        return secret.decode() if isinstance(secret, bytes) else secret
    if isinstance(written, dict) and isinstance(value, dict) and len(written) == len(value):
        return {name: _reveal(each, old) for (name, each), old in zip(written.items(), value.values())}
    if isinstance(written, list) and isinstance(value, (list, tuple)):
        return [_reveal(each, old) for each, old in zip(written, value)]
    return written


def drawn_by_pydantic(value: Any, pointer: str) -> List[Tuple[str, Any]]:
    """What factories of a model have made, by pointer: another validation of the same JSON would make others."""
    if isinstance(value, (list, tuple)):
        return [each for index, item in enumerate(value) for each in drawn_by_pydantic(item, f"{pointer}/{index}")]
    if not hasattr(value, "model_fields_set"):
        return []
    drawn: List[Tuple[str, Any]] = []
    for name, field in type(value).model_fields.items():
        alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name
        member = getattr(value, name)
        if name not in value.model_fields_set and field.default_factory is not None:
            drawn.append((f"{pointer}/{alias}", member))
        else:
            drawn.extend(drawn_by_pydantic(member, f"{pointer}/{alias}"))
    return drawn
