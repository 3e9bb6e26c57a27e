"""Schemas, the decorator and `run_workflow`."""

import asyncio
import datetime
import enum
import logging
import sys
import time
import unittest
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Optional, TypedDict

from execution_service import (
    AsyncRun,
    CalledRunFailed,
    Cancelled,
    Field,
    InvalidValue,
    NonRetryableError,
    OutputInvalid,
    Refused,
    Run,
    SchemaError,
    Wait,
    WaitTimedOut,
    workflow,
)
from execution_service.error_description import describe_error
from execution_service.schema import to_schema
from execution_service.testing import after, run_workflow
from execution_service.values import decode, encode


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
        with self.assertRaisesRegex(TypeError, "wrong gets an AsyncRun: write `AsyncRun` in place of `Run`"):

            @workflow(id="a", version="1")
            async def wrong(run: Run) -> None: ...

        with self.assertRaisesRegex(TypeError, "yields"):

            @workflow(id="a", version="1")
            def yielding(run: Run) -> Any:
                yield 1

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

    def test_reports_once_what_it_repeats_after_waits(self):
        @workflow(id="polls", version="1.0.0")
        def polls(run: Run) -> int:
            for number in range(30):
                run.log(f"poll {number}")
                print(f"printed {number}")
                run.progress(number)
                run.artifact(f"{number}.txt", "x")
                run.sleep(f"pause {number}", 60)
                run.step(f"look {number}", lambda: None)
            logging.info("done")
            return 30

        run = run_workflow(polls)
        expected = [line for number in range(30) for line in (f"poll {number}", f"printed {number}")]
        self.assertEqual(run.logs, [*expected, "done"])
        self.assertEqual([each["percent"] for each in run.events if each["type"] == "progress"], list(range(30)))
        steps = [(each["name"], each["state"]) for each in run.events if each["type"] == "step"]
        self.assertEqual(steps, [(f"look {number}", "started") for number in range(30)])

    def test_ends_its_retries_with_an_error_that_is_not_retryable(self):
        def charge() -> None:
            raise NonRetryableError("no such customer")

        @workflow(id="charge", version="1.0.0", retry=5)
        def charging(run: Run) -> None:
            run.step("charge", charge)

        run = run_workflow(charging)
        self.assertEqual((run.status, run.attempts, str(run.error)), ("failed", 1, "no such customer"))

    def test_refuses_arguments_that_say_no_time_or_name(self):
        wrong = {
            "The duration of sleep \"x\" is a timedelta, or a number of seconds, not {'hour': 1}": lambda run: run.sleep("x", {"hour": 1}),
            "The duration of sleep \"x\" is a timedelta, or a number of seconds, not '3 days'": lambda run: run.sleep("x", "3 days"),
            'Sleep "x" needs either a duration or `until`': lambda run: run.sleep("x"),
            'The duration of sleep "x" is 0 seconds to 366 days, not -1': lambda run: run.sleep("x", -1),
            'The duration of sleep "x" is 0 seconds to 366 days, not nan': lambda run: run.sleep("x", float("nan")),
            '`until` of sleep "x" has no time zone': lambda run: run.sleep("x", until=datetime.datetime(2026, 1, 1)),
            '`until` of sleep "x" is a datetime with a time zone, not 5': lambda run: run.sleep("x", until=5),
            "of 1 to 200 characters": lambda run: run.sleep("", 1),
            "halves of surrogate pairs": lambda run: run.step("\ud800", lambda: 1),
            '`timeout` of wait "approval" is a timedelta': lambda run: run.wait_for(approval, timeout="5"),
            '`timeout` of wait "approval" is 0': lambda run: run.wait_for(approval, timeout=0),
            '`title` of wait "approval" is a str': lambda run: run.wait_for(approval, title=5),
            '`show` of wait "approval" is a dictionary': lambda run: run.wait_for(approval, show=[1]),
            "declares no wait 'other'": lambda run: run.wait_for("other"),
            'Call "c" has no option `timeout`': lambda run: run.call("c", "leaf", timeout=5),
            '`tags` of call "c" is a list of texts of 1 to 64 letters': lambda run: run.call("c", "leaf", tags=["a b"]),
            '`priority` of call "c" is an int from -10 to 10': lambda run: run.call("c", "leaf", priority=11),
            "The variables of call \"c\" are a dictionary": lambda run: run.call("c", "leaf", [1]),
            "names a workflow, or the id of one, not None": lambda run: run.call("c", None),
            "a number from 0 to 100, not '50%'": lambda run: run.progress("50%"),
            "The name of an artifact is": lambda run: run.artifact("a b", ""),
            "The content of artifact a is bytes or str": lambda run: run.artifact("a", {}),
        }
        for expected, act in wrong.items():

            @workflow(id="wrong", version="1.0.0", waits=[approval])
            def wrongly(run: Run) -> None:
                act(run)

            with self.subTest(expected):
                self.assertIn(expected, str(run_workflow(wrongly).error))

    def test_fails_with_an_output_that_is_too_large_or_no_json(self):
        for value, expected in (("x" * 2**20, "The output has 1048578 bytes"), ({"a": {1: 2}}, "^/a: the key 1")):

            @workflow(id="large", version="1.0.0")
            def returning(run: Run) -> Any:
                return value

            with self.assertRaisesRegex(OutputInvalid, expected):
                run_workflow(returning).output

    def test_moves_a_fake_clock_by_waits(self):
        @workflow(id="clock", version="1.0.0", waits=[approval])
        def reading(run: Run) -> List[str]:
            began = run.step("begin", lambda: datetime.datetime.now(datetime.timezone.utc).isoformat())
            run.sleep("night", until=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=8))
            run.wait_for(approval)
            time.sleep(30)
            day = run.step("day", today)
            return [began, datetime.datetime.now(datetime.timezone.utc).isoformat(), str(day), str(time.time())]

        start = datetime.datetime(2026, 11, 20, tzinfo=datetime.timezone.utc)
        output = run_workflow(reading, clock=start, answers={"approval": after(3600, True)}).output
        self.assertEqual(output[:3], ["2026-11-20T00:00:00+00:00", "2026-11-20T09:00:30+00:00", "2026-11-20"])
        self.assertEqual(float(output[3]), start.timestamp() + 9 * 3600 + 30)
        self.assertEqual(datetime.datetime.__module__ + str(datetime.datetime(2026, 1, 1).year), "datetime2026")
        self.assertLess(abs(datetime.datetime.now().timestamp() - time.time()), 5)


def today() -> datetime.date:
    return datetime.date.today()


class AsyncTest(unittest.TestCase):
    def test_combines_steps_and_waits(self):
        async def read(number: int) -> datetime.date:
            await asyncio.sleep(0)
            return datetime.date(2026, 1, number)

        parts = []

        @workflow(id="async", version="1.0.0", waits=[approval], retry=2)
        async def combining(run: AsyncRun, variables: Dict[str, Any]) -> Any:
            parts.append(1)
            days = await asyncio.gather(*(run.step(f"read {n}", read, n) for n in (1, 2)), run.step("sync", pay, "A"))
            run.log("read")
            answered, first, second = await asyncio.gather(
                run.wait_for(approval), run.call("one", "count", {"n": 1}), run.call("two", "count", {"n": 2})
            )
            await run.sleep("pause", datetime.timedelta(days=1))
            await run.artifact("a.txt", "a")
            return [days[1], answered, first + second]

        run = run_workflow(
            combining, {}, answers={"approval": after(60, True)}, calls={"count": lambda variables: variables["n"] * 10}
        )
        self.assertEqual(run.output, ["2026-01-02", True, 30])
        self.assertEqual((run.logs, run.artifacts, run.attempts), (["read"], {"a.txt": b"a"}, 1))
        self.assertEqual(len(run.waits), 4)

    def test_has_the_same_winner_of_a_race_each_time(self):
        winners = set()

        @workflow(id="race", version="1.0.0", waits=[approval])
        async def racing(run: AsyncRun) -> str:
            tasks = {
                asyncio.ensure_future(run.sleep("patience", 100)): "patience",
                asyncio.ensure_future(run.wait_for(approval)): "answer",
            }
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            winners.add(tasks[done.pop()])
            await run.sleep("later", 1000)
            await run.step("end", lambda: None)
            return winners.copy().pop()

        self.assertEqual(run_workflow(racing, answers={"approval": after(50, True)}).output, "answer")
        self.assertEqual(winners, {"answer"})

    def test_fails_and_is_cancelled_as_asyncio_does(self):
        ended = []

        @workflow(id="async", version="1.0.0", retry=2)
        async def failing(run: AsyncRun, variables: Dict[str, Any]) -> None:
            if variables:
                raise ValueError(f"attempt {run.attempt}")
            try:
                run.progress(1)
                await asyncio.sleep(60)
            finally:
                ended.append(True)

        failed = run_workflow(failing, {"x": 1})
        self.assertEqual((failed.status, str(failed.error)), ("failed", "attempt 2"))
        cancelled = run_workflow(failing, {}, cancel_after_events=1)
        self.assertEqual((cancelled.status, ended), ("cancelled", [True]))


class ErrorTest(unittest.TestCase):
    def test_shows_causes_notes_and_groups(self):
        error = ValueError("outer")
        error.__notes__ = ["while charging A-1", 5]
        error.__cause__ = KeyError("inner")
        described = describe_error(error)
        self.assertEqual(described["message"], "outer\nwhile charging A-1\n5")
        self.assertEqual(described["stack"], "Caused by KeyError: 'inner'")
        if sys.version_info < (3, 11):
            self.skipTest("Python has exception groups from 3.11 on.")
        grouped = describe_error(ExceptionGroup("two", [error, ExceptionGroup("nested", [OSError("disk")])]))
        self.assertIn("two (2 sub-exceptions): ValueError: outer", grouped["message"])
        self.assertIn("ExceptionGroup: nested (1 sub-exception): OSError: disk", grouped["message"])
        self.assertIn("Contains OSError: disk", grouped["stack"])


if __name__ == "__main__":
    unittest.main()
