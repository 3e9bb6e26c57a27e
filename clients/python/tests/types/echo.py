"""A workflow for each type that a hint may name, which returns what it gets: `CASES` has a value of each."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import pathlib
import uuid
from typing import Annotated, Any, Deque, Dict, FrozenSet, List, Literal, NewType, Optional, Sequence, Set, Tuple, TypedDict, Union

from execution_service import Field, Run, Workflow, workflow


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Pair(enum.Enum):
    ONE = (1, "a")
    TWO = (2, "b")


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Spot:
    x: int
    y: int
    name: str


@dataclasses.dataclass
class Tree:
    name: str
    children: List[Tree] = dataclasses.field(default_factory=list)
    size: int = dataclasses.field(init=False, default=1)


class Size(TypedDict, total=False):
    width: int
    at: datetime.date


UserId = NewType("UserId", str)
Cents = Annotated[decimal.Decimal, Field(minimum=0, multiple_of=0.01)]

CASES: Dict[str, Tuple[Any, Any]] = {
    "str": (str, "é"),
    "int": (int, 2**53 - 1),
    "float": (float, 2.0),
    "bool": (bool, True),
    "optional": (Optional[int], None),
    "datetime": (datetime.datetime, datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.timezone.utc)),
    "date": (datetime.date, datetime.date(2026, 1, 2)),
    "time": (datetime.time, datetime.time(10, 30)),
    "timedelta": (datetime.timedelta, datetime.timedelta(days=3, hours=1, seconds=1.5)),
    "negative": (datetime.timedelta, datetime.timedelta(seconds=-90)),
    "decimal": (decimal.Decimal, decimal.Decimal("19.990")),
    "cents": (Cents, decimal.Decimal("4.35")),
    "uuid": (uuid.UUID, uuid.UUID(int=7)),
    "bytes": (bytes, b"\0\xff"),
    "path": (pathlib.Path, pathlib.Path("a/b.txt")),
    "enum": (Color, Color.BLUE),
    "int-enum": (Level, Level.HIGH),
    "tuple-enum": (Pair, Pair.TWO),
    "literal": (Literal["a", 1, True], 1),
    "literal-enum": (Literal[Color.RED, None], Color.RED),
    "list": (List[datetime.date], [datetime.date(2026, 1, 2)]),
    "sequence": (Sequence[int], [1, 2]),
    "deque": (Deque[int], __import__("collections").deque([1, 2])),
    "set": (Set[str], {"a", "b"}),
    "frozenset": (FrozenSet[Point], frozenset([Point(1), Point(2)])),
    "tuple": (Tuple[int, str], (1, "a")),
    "tuple-of-any-length": (Tuple[int, ...], (1, 2, 3)),
    "dict": (Dict[str, decimal.Decimal], {"a": decimal.Decimal("1.5")}),
    "typed-dict": (Size, {"width": 1, "at": datetime.date(2026, 1, 2)}),
    "new-type": (UserId, UserId("u")),
    "dataclass": (Point, Point(1, 2)),
    "recursive": (Tree, Tree("oak", [Tree("acorn")])),
    "optional-dataclass": (Optional[Point], Point(1)),
    "union": (Union[Point, Spot], Spot(1, 2, "a")),
    "any": (Any, {"a": [1, None]}),
}


def _pydantic_cases() -> Dict[str, Tuple[Any, Any]]:
    import pydantic
    from pydantic import BaseModel

    class Card(BaseModel):
        kind: Literal["card"]
        number: pydantic.SecretStr

    class Cash(BaseModel):
        kind: Literal["cash"]
        amount: decimal.Decimal

    class Alias(BaseModel):
        user_id: int = pydantic.Field(alias="userId")

    class Strict(BaseModel):
        model_config = pydantic.ConfigDict(strict=True)
        at: datetime.datetime
        id: uuid.UUID
        colors: FrozenSet[Color]
        pair: Tuple[int, str]

    class Many(BaseModel):
        duration: datetime.timedelta
        time: datetime.time
        day: datetime.date
        price: decimal.Decimal = pydantic.Field(max_digits=6, decimal_places=2)
        data: bytes
        tags: Set[str]
        address: ipaddress.IPv4Address
        network: ipaddress.IPv6Network
        home: pydantic.HttpUrl
        path: pathlib.Path
        color: Color
        count: pydantic.PositiveInt
        code: str = pydantic.Field(pattern=r"^[A-Z]{3}$", examples=["ABC"], deprecated=True)
        id: pydantic.UUID4
        size: pydantic.ByteSize
        items: pydantic.conlist(int, min_length=1)  # type: ignore[valid-type]
        encoded: pydantic.Base64Bytes
        aware: pydantic.AwareDatetime
        mapping: Dict[str, Optional[float]]
        children: List[Many] = []

    class Root(pydantic.RootModel[List[int]]):
        pass

    @pydantic.dataclasses.dataclass
    class Box:
        width: int = pydantic.Field(gt=0)

    Many.model_rebuild(_types_namespace={"Many": Many, "Color": Color})
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.timezone.utc)
    values = {
        "duration": datetime.timedelta(seconds=1.5), "time": datetime.time(10, 30), "day": datetime.date(2026, 1, 2),
        "price": decimal.Decimal("19.99"), "data": b"a", "tags": {"a"}, "address": ipaddress.IPv4Address("127.0.0.1"),
        "network": ipaddress.IPv6Network("::/64"), "home": "https://example.com/", "path": pathlib.Path("a"),
        "color": Color.RED, "count": 1, "code": "ABC", "id": uuid.uuid4(), "size": 1024, "items": [1], "encoded": b"YQ==",
        "aware": noon, "mapping": {"a": None},
    }  # fmt: skip
    return {
        "model": (Many, Many(**values, children=[Many(**values)])),
        "tagged": (
            Annotated[Union[Card, Cash], pydantic.Field(discriminator="kind")],
            Cash(kind="cash", amount=decimal.Decimal("0.1")),
        ),
        "alias": (Alias, Alias(userId=1)),
        "strict": (Strict, Strict(at=noon, id=uuid.UUID(int=1), colors=frozenset([Color.RED]), pair=(1, "a"))),
        "root": (Root, Root([1])),
        "pydantic-dataclass": (Box, Box(width=1)),
        "constrained": (Annotated[int, pydantic.Field(ge=1, multiple_of=3)], 3),
        "list-of-models": (List[Alias], [Alias(userId=1), Alias(userId=2)]),
    }


try:
    CASES.update(_pydantic_cases())
except ImportError:
    pass  # Without Pydantic 2.


def _echo(name: str, hint: Any) -> Workflow[Any, Any]:
    variables = dataclasses.make_dataclass("Variables", [("value", hint)])

    @workflow(id=f"echo-{name}", version="1.0.0", variables=variables, output=hint)
    def echo(run: Run, given: Any) -> Any:
        return run.step("keep", lambda value: value, given.value) if name == "any" else given.value

    return echo


WORKFLOWS = {name: _echo(name, hint) for name, (hint, _) in CASES.items()}
globals().update({f"echo_{name}": each for name, each in WORKFLOWS.items()})
