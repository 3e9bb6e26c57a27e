"""The types that are one value of JSON: how each is described, read and written. A type is added here, and nowhere else."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import math
import pathlib
import re
import uuid
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

JsonSchema = Dict[str, Any]

#: Larger integers lose digits in programs whose numbers are doubles, such as the service.
INTEGER_MAX = 2**53 - 1
DECIMAL_PATTERN = r"^-?[0-9]+(\.[0-9]+)?$"
DURATION_PATTERN = r"^-?P(?:[0-9]+[WD]){0,2}(?:T(?:[0-9]+(?:\.[0-9]+)?[HMS]){1,3})?$"
#: RFC 3339 demands an offset in a time, which the times of Python need not have.
TIME_PATTERN = r"^[0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+-][0-2][0-9]:[0-5][0-9])?$"


class Scalar(NamedTuple):
    #: The schema of what is read.
    schema: JsonSchema
    #: What a value must be, for an error.
    detail: str
    #: From JSON. :raises ValueError: if it is something else.
    read: Callable[[Any], Any]
    #: To JSON. :raises ValueError: with the reason.
    write: Callable[[Any], Any]
    #: The schema of what is written, if that is narrower.
    written: Optional[JsonSchema] = None


def _exactly(kind: Any) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise ValueError
        return value

    return read


def _from_text(convert: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: convert(_exactly(str)(value))


def _read_integer(value: Any) -> int:
    number = _exactly((int, float))(value)
    if not float(number).is_integer():
        raise ValueError
    return int(number)


def _write_integer(value: int) -> int:
    if abs(value) > INTEGER_MAX:
        raise ValueError(f"{value} has more digits than a number of JSON keeps: use a str")
    return int(value)


def _write_float(value: float) -> float:
    if math.isfinite(value):
        return float(value)
    raise ValueError(f"{value} is no number of JSON")


def _read_decimal(value: Any) -> decimal.Decimal:
    if isinstance(value, str) and not re.match(DECIMAL_PATTERN, value):
        raise ValueError
    # The shortest text of a float is what its author wrote: 4.35, not 4.3499999999999996447….
    return decimal.Decimal(value if isinstance(value, str) else repr(_exactly((int, float))(value)))


def _write_decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"{value} is no number of JSON")
    return format(value, "f")


def _z_to_offset(text: str) -> str:
    # fromisoformat knows no Z before Python 3.11.
    return text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text


def _write_datetime(value: datetime.datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("the datetime has no time zone: use datetime.now(timezone.utc), for example")
    return value.isoformat()


_UNITS = {"W": "weeks", "D": "days", "H": "hours", "M": "minutes", "S": "seconds"}


def _read_duration(text: str) -> datetime.timedelta:
    if not re.match(DURATION_PATTERN, text):
        raise ValueError
    parts = [datetime.timedelta(**{_UNITS[unit]: float(amount)}) for amount, unit in re.findall("([0-9.]+)([WDHMS])", text)]
    duration = sum(parts, datetime.timedelta())
    return -duration if text.startswith("-") else duration


def _write_duration(value: datetime.timedelta) -> str:
    sign, value = ("-", -value) if value < datetime.timedelta() else ("", value)
    seconds = decimal.Decimal(value.seconds) + decimal.Decimal(value.microseconds) / 1_000_000
    return f"{sign}P{value.days}DT{format(seconds.normalize(), 'f')}S"


def _read_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError from error


SCALARS: Mapping[Any, Scalar] = {
    str: Scalar({"type": "string"}, "must be a string", _exactly(str), str),
    bool: Scalar({"type": "boolean"}, "must be a boolean", _exactly(bool), bool),
    int: Scalar({"type": "integer"}, "must be an integer", _read_integer, _write_integer),
    float: Scalar({"type": "number"}, "must be a number", lambda value: float(_exactly((int, float))(value)), _write_float),
    type(None): Scalar({"type": "null"}, "must be null", _exactly(type(None)), lambda value: None),
    datetime.datetime: Scalar(
        {"type": "string", "format": "date-time"},
        "must be a date and time (RFC 3339)",
        _from_text(lambda text: datetime.datetime.fromisoformat(_z_to_offset(text))),
        _write_datetime,
    ),
    datetime.date: Scalar(
        {"type": "string", "format": "date"},
        "must be a date such as 2026-11-20",
        _from_text(datetime.date.fromisoformat),
        datetime.date.isoformat,
    ),
    datetime.time: Scalar(
        {"type": "string", "pattern": TIME_PATTERN},
        "must be a time such as 10:30:00",
        _from_text(lambda text: datetime.time.fromisoformat(_z_to_offset(text))),
        datetime.time.isoformat,
    ),
    datetime.timedelta: Scalar(
        {"type": "string", "pattern": DURATION_PATTERN},
        "must be a duration such as P3D or PT1H30M (ISO 8601, without years and months)",
        _from_text(_read_duration),
        _write_duration,
    ),
    decimal.Decimal: Scalar(
        {"type": ["string", "number"], "pattern": DECIMAL_PATTERN},
        'must be a number, or a decimal such as "19.99"',
        _read_decimal,
        _write_decimal,
        {"type": "string", "pattern": DECIMAL_PATTERN},
    ),
    uuid.UUID: Scalar({"type": "string", "format": "uuid"}, "must be a UUID", _from_text(uuid.UUID), str),
    bytes: Scalar(
        {"type": "string", "contentEncoding": "base64"},
        "must be base64",
        _from_text(_read_bytes),
        lambda value: base64.b64encode(value).decode(),
    ),
    pathlib.Path: Scalar({"type": "string"}, "must be a path", _from_text(pathlib.Path), str),
    pathlib.PurePath: Scalar({"type": "string"}, "must be a path", _from_text(pathlib.PurePath), str),
}


def scalar_of(hint: Any) -> Optional[Scalar]:
    try:
        return SCALARS.get(hint)
    except TypeError:
        return None  # It cannot be hashed, as a dictionary.


def scalar_of_value(value: Any) -> Optional[Scalar]:
    """By the first of its classes that is one: a ``datetime`` is a ``date``, too."""
    return next((SCALARS[each] for each in type(value).__mro__ if each in SCALARS), None)


def can_be_unique(items: Any) -> bool:
    """Whether a validator finds repeated items fast. The comparison of objects and arrays takes all pairs of them."""
    kind = items.get("type", "object") if isinstance(items, dict) else "object"
    return set([kind] if isinstance(kind, str) else kind).isdisjoint(("object", "array"))
