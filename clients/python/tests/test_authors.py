"""Schemas, the decorator and `run_workflow`."""

import datetime
import enum
import logging
import unittest
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Optional, TypedDict

from execution_service import (
    CalledRunFailed,
    Cancelled,
    Field,
    InvalidValue,
    Refused,
    Run,
    SchemaError,
    Wait,
    WaitTimedOut,
    workflow,
)
from execution_service.schema import decode, encode, to_schema
from execution_service.testing import after, run_workflow


class Color(enum.Enum):
    RED = "red"


class Size(TypedDict, total=False):
    width: int


@dataclass
class Tree:
    """A tree."""

    name: Annotated[str, Field(min_length=2, secret=True)]
    color: Color = Color.RED
    at: Optional[datetime.datetime] = None
    children: List["Tree"] = field(default_factory=list)
    size: Optional[Size] = None


@dataclass
class Payment:
    id: str
    at: datetime.date


@dataclass
class Order:
    order_id: str
    token: Annotated[str, Field(secret=True)] = ""


approval = Wait("approval", bool)


def pay(order_id: str) -> Payment:
    return Payment(f"pay {order_id}", datetime.date(2026, 11, 20))


class SchemaTest(unittest.TestCase):
    def test_describes_dataclasses_and_reads_what_it_writes(self):
        schema = to_schema(Tree)
        self.assertEqual(schema["required"], ["name"])
        self.assertEqual(schema["description"], "A tree.")
        self.assertFalse(schema["additionalProperties"])
        properties = schema["properties"]
        self.assertEqual(properties["name"], {"type": "string", "minLength": 2, "writeOnly": True})
        self.assertEqual(properties["color"], {"enum": ["red"], "default": "red"})
        self.assertEqual(properties["children"]["items"], {"$ref": "#/$defs/Tree"})
        at = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
        tree = Tree("oak", at=at, children=[Tree("acorn")], size={"width": 3})
        self.assertEqual(decode(encode(tree), Tree), tree)
        self.assertEqual(decode("2026-01-02T00:00:00Z", datetime.datetime), at)

    def test_says_which_member_does_not_match(self):
        with self.assertRaisesRegex(InvalidValue, "^/children/0/name: must be a string, not int$"):
            decode({"name": "oak", "children": [{"name": 1}]}, Tree)
        with self.assertRaisesRegex(SchemaError, "complex.* has no JSON Schema"):
            to_schema(Dict[str, complex])

    def test_takes_models_of_pydantic(self):
        try:
            import pydantic
        except ImportError:
            self.skipTest("Pydantic is not installed.")

        class Model(pydantic.BaseModel):
            token: pydantic.SecretStr
            count: int = pydantic.Field(ge=1)

        schema = to_schema(Model)
        self.assertTrue(schema["properties"]["token"]["writeOnly"])
        self.assertEqual(decode({"token": "x", "count": 1}, Model).count, 1)


class WorkflowTest(unittest.TestCase):
    def test_refuses_what_cannot_be_a_workflow(self):
        with self.assertRaisesRegex(TypeError, "is async"):

            @workflow(id="a", version="1")
            async def wrong(run: Run) -> None: ...

        @workflow(id="b", version="1")
        def number(run: Run, count: int) -> None: ...

        with self.assertRaisesRegex(SchemaError, "must be an object"):
            number.definition()

    def test_runs_with_steps_secrets_and_log(self):
        @workflow(id="pay", version="1.0.0")
        def paying(run: Run, order: Order) -> Payment:
            print("token", order.token)
            logging.info("logged")
            return run.step("pay", pay, order.order_id)

        run = run_workflow(paying, Order("A-1", token="secret-token"))
        self.assertEqual(run.output, Payment("pay A-1", datetime.date(2026, 11, 20)))
        self.assertEqual(run.logs, ["token ********", "logged"])
        self.assertEqual(run.steps, {"pay": {"id": "pay A-1", "at": "2026-11-20"}})
        fake = run_workflow(paying, {"order_id": "A-1"}, steps={"pay": Payment("fake", datetime.date(2026, 1, 1))})
        self.assertEqual(fake.output.id, "fake")
        with self.assertRaisesRegex(InvalidValue, "^/variables/other: is unknown"):
            run_workflow(paying, {"order_id": "A-1", "other": 1})

    def test_runs_with_secrets_and_settings_of_the_account(self):
        @workflow(id="shop", version="1.0.0", secrets=["SHOP_TOKEN"], settings={"RETRIES": int, "SHOP_URL": {"type": "string"}})
        def shopping(run: Run) -> str:
            print("token", run.secrets["SHOP_TOKEN"])
            return f"{run.settings['SHOP_URL']} {run.settings['RETRIES'] + 1}"

        definition = shopping.definition()
        self.assertEqual(definition["secrets"], ["SHOP_TOKEN"])
        self.assertEqual(definition["settings"], {"RETRIES": {"type": "integer"}, "SHOP_URL": {"type": "string"}})
        secrets, settings = {"SHOP_TOKEN": "canary-token"}, {"RETRIES": 2, "SHOP_URL": "http://shop"}
        run = run_workflow(shopping, secrets=secrets, settings=settings)
        self.assertEqual((run.output, run.logs), ("http://shop 3", ["token ********"]))
        with self.assertRaisesRegex(LookupError, "declares the secret SHOP_TOKEN, which `secrets` does not have"):
            run_workflow(shopping, settings=settings)
        with self.assertRaisesRegex(LookupError, "does not declare the setting OTHER"):
            run_workflow(shopping, secrets=secrets, settings={**settings, "OTHER": 1})
        with self.assertRaisesRegex(InvalidValue, "^/settings/RETRIES: must be integer"):
            run_workflow(shopping, secrets=secrets, settings={**settings, "RETRIES": "many"})

    def test_reuses_results_in_the_next_attempt(self):
        paid = []

        @workflow(id="retry", version="1.0.0", retry=3)
        def retrying(run: Run) -> int:
            run.step("pay", paid.append, 1)
            if run.attempt < 3:
                raise ConnectionError("not yet")
            return run.attempt

        run = run_workflow(retrying)
        self.assertEqual((run.output, run.attempts, paid), (3, 3, [1]))

    def test_waits_without_taking_time(self):
        calls = []

        @workflow(id="waiting", version="1.0.0", waits=[approval])
        def waiting(run: Run, variables: Dict[str, Any]) -> Any:
            calls.append(len(calls))
            run.sleep("cool off", datetime.timedelta(days=3))
            if not run.wait_for(approval):
                return None
            one = run.start_call("one", "count", {"n": 1})
            two = run.start_call("two", "count", {"n": 2})
            return one.result() + two.result()

        run = run_workflow(
            waiting, {}, answers={"approval": after(60, True)}, calls={"count": lambda variables: variables["n"] * 10}
        )
        self.assertEqual(run.output, 30)
        self.assertEqual([(each["name"], each["seconds"]) for each in run.waits][:2], [("cool off", 259200), ("approval", 60)])
        self.assertEqual(len(calls), 5)
        unanswered = run_workflow(waiting, {}, answers={"approval": None})
        self.assertIsInstance(unanswered.error, WaitTimedOut)

        def refuse(variables):
            raise ValueError("no count")

        failed = run_workflow(waiting, {}, answers={"approval": True}, calls={"count": refuse})
        self.assertIsInstance(failed.error, CalledRunFailed)
        self.assertIn("ValueError: no count", str(failed.error))

    def test_cancels_at_the_next_call_though_exceptions_are_caught(self):
        @workflow(id="endless", version="1.0.0")
        def endless(run: Run) -> None:
            while True:
                try:
                    run.progress(1)
                except Exception:
                    pass

        run = run_workflow(endless, cancel_after_events=3)
        self.assertEqual(run.status, "cancelled")
        self.assertIsInstance(run.error, Cancelled)

    def test_refuses_names_that_repeat_and_results_without_a_type(self):
        @workflow(id="twice", version="1.0.0")
        def twice(run: Run, variables: Dict[str, Any]) -> None:
            run.step("a", lambda: Payment("x", datetime.date(2026, 1, 1)) if variables else 1)
            run.step("a", lambda: 1)

        self.assertIn('named "a"', str(run_workflow(twice, {}).error))
        self.assertIn("annotate", str(run_workflow(twice, {"x": 1}).error))
        self.assertFalse(issubclass(Cancelled, Exception))
        self.assertTrue(issubclass(Refused, Exception))


if __name__ == "__main__":
    unittest.main()
