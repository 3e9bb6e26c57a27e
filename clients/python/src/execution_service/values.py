"""Values of type hints from JSON, and values to JSON."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import decimal
import enum
import json
import typing
from typing import Any, Dict, List, Optional, Tuple

from .errors import InvalidValue, SchemaError
from .hints import LISTS, MAPPINGS, SETS, is_annotated, is_typed_dict, is_union, members_of, normalize
from .pydantic_types import drawn_by_pydantic, is_pydantic, read_pydantic, write_pydantic
from .scalars import Scalar, scalar_of, scalar_of_value
from .validation import check_number

#: What the service takes.
_LEVELS_MAX = 64
_BYTES_MAX = 1024 * 1024

#: By pointer, as JSON: what factories of defaults have made.
Drawn = Dict[str, Any]


def decode(value: Any, hint: Any, pointer: str = "", drawn: Optional[Drawn] = None) -> Any:
    """A value of the type from JSON. :raises InvalidValue: if it does not match.

    :param drawn: gets what factories make for members that the value does not have.
    """
    return _Reader(drawn).read(value, hint, pointer)


class _Reader:
    def __init__(self, drawn: Optional[Drawn]) -> None:
        self._drawn = drawn

    def read(self, value: Any, hint: Any, pointer: str) -> Any:
        hint = normalize(hint)
        if hint is Any or hint is object or isinstance(hint, dict):
            return value
        if is_pydantic(hint):
            return self._read_pydantic(value, hint, pointer)
        if is_annotated(hint):
            return self._read_annotated(value, hint, pointer)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if is_union(origin):
            return self._read_union(value, arguments, pointer)
        scalar = scalar_of(hint)
        if scalar:
            return _read_scalar(value, scalar, pointer)
        if origin is typing.Literal:
            return _choose(value, arguments, pointer)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return _choose(value, tuple(hint), pointer)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) or is_typed_dict(hint):
            return self._read_members(value, hint, pointer)
        return self._read_container(value, origin or hint, arguments, pointer)

    def _read_pydantic(self, value: Any, hint: Any, pointer: str) -> Any:
        read = read_pydantic(value, hint, pointer)
        if self._drawn is not None:
            self._drawn.update({place: encode(each, place) for place, each in drawn_by_pydantic(read, pointer)})
        return read

    def _read_annotated(self, value: Any, hint: Any, pointer: str) -> Any:
        read = self.read(value, hint.__origin__, pointer)
        if isinstance(value, str) and isinstance(read, decimal.Decimal):
            # Its bounds are of the number, which a validator of JSON does not see in a string.
            for each in hint.__metadata__:
                if hasattr(each, "keywords"):
                    check_number(read, each.keywords(), pointer)
        return read

    def _read_union(self, value: Any, arguments: Tuple[Any, ...], pointer: str) -> Any:
        failures = []
        # An integer must not become a float because float comes first, nor an object the first class that ignores the rest.
        for hint in sorted(arguments, key=lambda each: _distance(value, each)):
            try:
                return self.read(value, hint, pointer)
            except InvalidValue as error:
                failures.append(error)
        present = [each for each in arguments if each is not type(None)]
        raise failures[-1] if len(present) == 1 else InvalidValue(pointer, "matches none of the types that it may have")

    def _read_members(self, value: Any, hint: Any, pointer: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidValue(pointer, f"must be an object, not {type(value).__name__}")
        members, made = {}, []
        for member in members_of(hint):
            place = f"{pointer}/{member.name}"
            if member.name in value:
                members[member.name] = self.read(value[member.name], member.hint, place)
            elif member.is_required:
                raise InvalidValue(place, "is required")
            elif member.factory:
                made.append(member.name)
        if is_typed_dict(hint):
            return {**value, **members}
        # What the service lets through, such as a member that a later version adds, a dataclass cannot have.
        read = hint(**members)
        if self._drawn is not None:
            self._drawn.update({f"{pointer}/{name}": encode(getattr(read, name), f"{pointer}/{name}") for name in made})
        return read

    def _read_container(self, value: Any, origin: Any, arguments: Tuple[Any, ...], pointer: str) -> Any:
        if origin in MAPPINGS:
            if not isinstance(value, dict):
                raise InvalidValue(pointer, f"must be an object, not {type(value).__name__}")
            member = arguments[1] if arguments else Any
            return {name: self.read(each, member, f"{pointer}/{name}") for name, each in value.items()}
        if origin not in LISTS and origin not in SETS:
            raise SchemaError(f"{origin!r} cannot be read from JSON.")
        if not isinstance(value, list):
            raise InvalidValue(pointer, f"must be an array, not {type(value).__name__}")
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            hints = () if arguments == ((),) else arguments
            if len(hints) != len(value):
                raise InvalidValue(pointer, f"must have {len(hints)} items")
            return tuple(self.read(each, hint, f"{pointer}/{i}") for i, (each, hint) in enumerate(zip(value, hints)))
        item = arguments[0] if arguments else Any
        items = [self.read(each, item, f"{pointer}/{index}") for index, each in enumerate(value)]
        if origin in SETS:
            return frozenset(items) if origin is frozenset else set(items)
        return origin(items) if origin in (tuple, collections.deque) else items


def _read_scalar(value: Any, scalar: Scalar, pointer: str) -> Any:
    try:
        return scalar.read(value)
    except (ValueError, ArithmeticError):
        raise InvalidValue(pointer, f"{scalar.detail}, not {type(value).__name__}" if _is_other(value, scalar) else scalar.detail) from None


def _is_other(value: Any, scalar: Scalar) -> bool:
    names = scalar.schema["type"]
    return not (isinstance(value, str) and "string" in names)


def _choose(value: Any, choices: Tuple[Any, ...], pointer: str) -> Any:
    """The choice that is this value in JSON: a tuple is a list there."""
    written = [encode(each) for each in choices]
    for each, choice in zip(written, choices):
        if each == value and isinstance(each, bool) == isinstance(value, bool):
            return choice
    raise InvalidValue(pointer, f"must be one of {', '.join(map(repr, written))}")


def _distance(value: Any, hint: Any) -> int:
    """How far a type is from a value: 0 for its own type, and one more for each member that the type does not have."""
    kind = normalize(hint)
    if isinstance(value, dict) and isinstance(kind, type) and (dataclasses.is_dataclass(kind) or is_typed_dict(kind)):
        return len(set(value) - {each.name for each in members_of(kind)})
    return 0 if kind is type(value) else 1


def encode(value: Any, pointer: str = "", *, secrets: bool = True) -> Any:
    """A value as JSON has it. :raises InvalidValue: if it cannot be JSON.

    :param secrets: whether secrets of Pydantic are written as they are, rather than masked.
    """
    if pointer.count("/") > _LEVELS_MAX:
        raise InvalidValue(pointer[:200], f"has more than {_LEVELS_MAX} levels, or contains itself")

    def write(each: Any, name: Any) -> Any:
        return encode(each, f"{pointer}/{name}", secrets=secrets)

    if isinstance(value, enum.Enum):
        return encode(value.value, pointer, secrets=secrets)
    if is_pydantic(type(value)):
        return write_pydantic(value, secrets)
    scalar = scalar_of_value(value)
    if scalar:
        try:
            return scalar.write(value)
        except ValueError as error:
            raise InvalidValue(pointer, str(error)) from None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Only what the constructor takes can be read again.
        return {f.name: write(getattr(value, f.name), f.name) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, collections.abc.Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InvalidValue(pointer, f"the key {name!r} is no str, as the keys of a JSON object are")
        return {str(name): write(each, name) for name, each in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [write(each, index) for index, each in enumerate(value)]
    if isinstance(value, collections.abc.Set):
        # In the same order each time, whatever the seed of hashes.
        return sorted((write(each, index) for index, each in enumerate(value)), key=lambda each: json.dumps(each, sort_keys=True))
    raise InvalidValue(pointer, f"{type(value).__name__} cannot be JSON: {_advice(value)}")


def to_json(value: Any, subject: str, *, secrets: bool = True) -> Any:
    """The value as JSON. :raises ValueError: if it cannot be, or is too large."""
    written = encode(value, secrets=secrets)
    size = len(json.dumps(written, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
    if size > _BYTES_MAX:
        raise ValueError(f"{subject} has {size} bytes as JSON; at most {_BYTES_MAX} are allowed. Use an artifact.")
    return written


def _advice(value: Any) -> str:
    if isinstance(value, collections.abc.Iterator):
        return "make it a list"
    return "return a dataclass, or a value of JSON such as str(…)"


def needs_hint(value: Any) -> bool:
    """Whether JSON alone does not say which type the value had."""
    if isinstance(value, list):
        return any(map(needs_hint, value))
    if isinstance(value, tuple):
        return any(map(needs_hint, value))
    if isinstance(value, dict):
        return any(map(needs_hint, value.values()))
    return not (value is None or isinstance(value, (str, bool, int, float)) and not isinstance(value, enum.Enum))


def insert_drawn(value: Any, drawn: Drawn, pointer: str) -> Any:
    """JSON with what factories have made, as if the caller had given it."""
    inserted = json.loads(json.dumps(value))
    for place, each in drawn.items():
        *parents, last = _parts(place[len(pointer) :])
        target = inserted
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        target[last] = each
    return inserted


def _parts(pointer: str) -> List[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
