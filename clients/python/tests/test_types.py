"""Types of hints: their schemas, what is refused, and values that travel."""

import dataclasses
import datetime
import decimal
import enum
import json
import sys
import unittest
import uuid
from pathlib import Path
from typing import Annotated, Any, Callable, Dict, List, Optional, Set, Union

from execution_service import Field, InvalidValue, Run, SchemaError, workflow
from execution_service.schema import to_schema
from execution_service.testing import run_workflow
from execution_service.validation import validate
from execution_service.values import decode, encode

sys.path.insert(0, str(Path(__file__).parent / "types"))
from echo import CASES, WORKFLOWS

try:
    import pydantic
except ImportError:
    pydantic = None


@dataclasses.dataclass
class Job:
    id: uuid.UUID = dataclasses.field(default_factory=uuid.uuid4)
    tags: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Passing:
    seed: dataclasses.InitVar[int]


class Unreadable(enum.Enum):
    IT = object()


@dataclasses.dataclass
class Late:
    at: datetime.datetime = datetime.datetime(2026, 1, 1)


@dataclasses.dataclass
class Order:
    items: List[Dict[str, complex]]


class TypesTest(unittest.TestCase):
    def test_reads_what_it_writes_and_what_its_schema_describes(self):
        for name, (hint, value) in CASES.items():
            with self.subTest(name):
                flow = WORKFLOWS[name]
                definition = flow.definition()
                written = json.loads(json.dumps(encode(flow.variables(value))))
                validate(written, definition["variables"])
                read = decode(written, flow.variables).value
                self.assertEqual((read, type(read)), (value, type(value)))
                if hint is not Any:
                    validate(encode(read), definition["output"])

    def test_refuses_what_it_could_not_read_or_write_with_its_place(self):
        refused = {
            Passing: r"Passing\.seed is an InitVar.*Make it a field",
            Unreadable: "Unreadable has a value that cannot be JSON: .*object cannot be JSON",
            Late: r"The default of Late\.at cannot be JSON: .*no time zone",
            Order: r"Order\.items: \[\]{}<class 'complex'> has no JSON Schema\. Use a dataclass",
            Set[List[int]]: "items that a set cannot have.*Use a list",
            Dict[int, str]: "the keys of a JSON object are str",
            Callable[[], int]: "has no JSON Schema",
        }
        for hint, expected in refused.items():
            with self.subTest(hint), self.assertRaisesRegex(SchemaError, expected):
                to_schema(hint)
        unwritable = {2**53: "use a str", float("nan"): "no number", (n for n in ()): "make it a list", object(): "dataclass"}
        for value, expected in unwritable.items():
            with self.subTest(value), self.assertRaisesRegex(InvalidValue, f"^/a: .*{expected}"):
                encode({"a": value})
        endless: List[Any] = []
        endless.append(endless)
        with self.assertRaisesRegex(InvalidValue, "contains itself"):
            encode(endless)

    def test_names_the_workflow_of_a_type_that_has_no_schema(self):
        @workflow(id="orders", version="1.0.0", variables=Order)
        def orders(run: Run, order: Any) -> None: ...

        with self.assertRaisesRegex(SchemaError, r"^The variables of workflow orders: Order\.items: "):
            orders.definition()

    def test_calls_a_factory_once_for_each_run(self):
        @workflow(id="factory", version="1.0.0", retry=2)
        def factory(run: Run, job: Job) -> List[str]:
            seen.append(str(job.id))
            run.sleep("pause", 60)
            if run.attempt == 1:
                raise ConnectionError
            return seen

        properties = factory.definition()["variables"]["properties"]
        self.assertEqual(properties, {"id": {"type": "string", "format": "uuid"}, "tags": {**properties["tags"], "default": []}})
        self.assertEqual(factory.definition(), factory.definition())
        runs = []
        for _ in range(2):
            seen: List[str] = []
            self.assertEqual(run_workflow(factory, {}).status, "succeeded")
            self.assertEqual(len(seen), 3)
            runs.append(set(seen))
        self.assertEqual([len(each) for each in runs], [1, 1])
        self.assertNotEqual(*runs)

    def test_decides_multiples_as_people_write_numbers(self):
        schema = to_schema(Annotated[float, Field(multiple_of=0.01)])
        for value in (4.35, 19.99, 0.07, 8.69, 2.34, 143.48, 1.1, 100.1, 1e300, -0.03):
            validate(value, schema)
        for value in (0.005, 1.001, 1e-300):
            with self.subTest(value), self.assertRaisesRegex(InvalidValue, "must be a multiple of 0.01"):
                validate(value, schema)
        with self.assertRaisesRegex(InvalidValue, "must be a multiple"):
            decode("0.005", CASES["cents"][0])

    def test_takes_the_nearest_type_of_a_union(self):
        hint = CASES["union"][0]
        self.assertEqual(type(decode({"x": 1, "y": 2, "name": "a"}, hint)).__name__, "Spot")
        self.assertEqual(type(decode({"x": 1, "y": 2}, hint)).__name__, "Point")
        self.assertEqual(decode(1, Union[float, int]), 1)
        self.assertIsInstance(decode(1, Union[float, int]), int)

    def test_gives_classes_of_one_name_definitions_of_their_own(self):
        def item(kind: Any) -> Any:
            Item = dataclasses.make_dataclass("Item", [("value", kind)])
            return dataclasses.make_dataclass("Box", [("item", Item), ("items", List[Item])])

        Orders = dataclasses.make_dataclass("Orders", [("a", item(int)), ("b", item(str)), ("c", item(bool))])
        schema = to_schema(Orders)
        given = {name: {"item": {"value": value}, "items": []} for name, value in (("a", 1), ("b", "s"), ("c", True))}
        validate(given, schema)
        with self.assertRaisesRegex(InvalidValue, "^/b/item/value: must be string"):
            validate({**given, "b": given["a"]}, schema)


@unittest.skipUnless(pydantic, "Pydantic is not installed.")
class PydanticTest(unittest.TestCase):
    def test_gives_models_of_one_name_definitions_of_their_own(self):
        def box(kind: Any) -> Any:
            Item = pydantic.create_model("Item", x=(kind, ...))
            return pydantic.create_model("Box", item=(Item, ...))

        Orders = dataclasses.make_dataclass("Orders", [("a", box(int)), ("b", box(str)), ("c", box(int))])
        schema = to_schema(Orders)
        validate({"a": {"item": {"x": 1}}, "b": {"item": {"x": "s"}}, "c": {"item": {"x": 2}}}, schema)
        with self.assertRaisesRegex(InvalidValue, "^/b/item/x: must be string"):
            validate({"a": {"item": {"x": 1}}, "b": {"item": {"x": 1}}, "c": {"item": {"x": 2}}}, schema)

    def test_sends_secrets_as_they_are_and_returns_them_masked(self):
        class Login(pydantic.BaseModel):
            password: pydantic.SecretStr

        login = Login(password=pydantic.SecretStr("canary"))
        self.assertEqual(encode(login), {"password": "canary"})
        self.assertEqual(encode(login, secrets=False), {"password": "**********"})
        self.assertTrue(to_schema(Login)["properties"]["password"]["writeOnly"])
        with self.assertRaises(InvalidValue) as refused:
            decode({"password": ["canary"]}, Login)
        self.assertEqual(str(refused.exception), "/password: Input should be a valid string")

    def test_calls_a_factory_of_a_model_once_for_each_run(self):
        class Inner(pydantic.BaseModel):
            id: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4, alias="innerId")

        class Outer(pydantic.BaseModel):
            inner: Inner
            price: decimal.Decimal = decimal.Decimal("1.5")
            at: datetime.datetime = pydantic.Field(default_factory=lambda: datetime.datetime.now(datetime.timezone.utc))

        @workflow(id="factory", version="1.0.0")
        def factory(run: Run, outer: Outer) -> int:
            seen.add(outer.model_dump_json())
            run.sleep("pause", 60)
            return len(seen)

        seen: Set[str] = set()
        self.assertEqual(run_workflow(factory, {"inner": {}}).output, 1)
        self.assertEqual(run_workflow(factory, {"inner": {}}).output, 2)

    def test_says_which_member_pydantic_cannot_describe(self):
        class Odd(pydantic.BaseModel):
            act: Callable[[], int]

        with self.assertRaisesRegex(SchemaError, "Pydantic has no JSON Schema for .*Odd: .*CallableSchema"):
            to_schema(Optional[Odd])


if __name__ == "__main__":
    unittest.main()
