"""The worker with real processes against a service that speaks the protocol."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from fake_service import FakeService

WORKFLOWS = str(Path(__file__).parent / "workflows")


class WorkerTest(unittest.TestCase):
    def setUp(self):
        self.service = FakeService()
        self.addCleanup(self.service.close)
        command = [sys.executable, "-m", "execution_service", "worker", "--url", self.service.url, "--capacity", "3"]
        self.worker = subprocess.Popen(
            [*command, "--grace-seconds", "0.2", WORKFLOWS],
            env={**os.environ, "API_KEY": "key"},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.stop)

    def stop(self):
        if self.worker.poll() is None:
            self.worker.send_signal(signal.SIGTERM)
        self.output = self.worker.communicate(timeout=30)[1]
        return self.worker.returncode

    def run_greet(self, mode="greet", **claim):
        return self.service.queue(variableData={"name": "Ada", "mode": mode}, **claim)

    def test_executes_a_run_and_reports_in_order(self):
        run = self.run_greet()
        self.assertEqual(self.service.end_of(run), {"outcome": "succeeded", "output": {"text": "Hello, Ada!"}})
        kinds = [(kind, rest) for each, kind, rest, _ in self.service.reports if each == run]
        self.assertEqual(
            kinds, [("steps", ["compose"]), ("artifacts", ["greeting.txt"]), ("complete", [])]
        )
        self.assertEqual(
            self.service.events(run),
            [
                {"type": "log", "level": "info", "message": "printed"},
                {"type": "log", "level": "warn", "message": "warned"},
                {"type": "step", "name": "compose", "state": "started"},
            ],
        )
        self.assertEqual(self.service.worker["workflows"][0]["id"], "python-greet")
        self.assertEqual(self.stop(), 0)
        self.assertTrue(self.service.deleted)

    def test_hands_secrets_and_settings_to_the_workflow(self):
        declared = {"accountSecrets": {"SHOP_TOKEN": "token"}, "settings": {"RETRIES": 2}}
        run = self.service.queue(workflowId="python-shop", variableData={}, **declared)
        self.assertEqual(self.service.end_of(run)["output"], {"text": "token 3"})
        registered = self.service.worker["workflows"][1]
        self.assertEqual((registered["secrets"], registered["settings"]), (["SHOP_TOKEN"], {"RETRIES": {"type": "integer"}}))

    def test_writes_files_before_the_attempt_and_removes_them(self):
        self.service.files["f1"] = b"a" * 3_000_000
        self.service.outages = [("GET", "f1", 503)]
        file = {"pointer": "/file", "id": "f1", "name": "r\u00e9sum\u00e9.pdf", "bytes": 3_000_000}
        queued = {"workflowId": "python-read", "variableData": {"file": "f1"}}
        run = self.service.queue(**queued, files=[file])
        self.assertEqual(self.service.end_of(run)["output"], {"text": "3000000 bytes of r\u00e9sum\u00e9.pdf in f1"})
        self.assertEqual(self.service.events(run)[0]["message"], "reading f1")
        registered = self.service.worker["workflows"][2]["variables"]["properties"]["file"]
        self.assertEqual(registered, {"type": "string", "format": "file"})
        missing = self.service.queue(**queued, files=[{**file, "id": "f2"}])
        self.assertEqual(self.service.end_of(missing)["error"]["name"], "FileMissing")
        left = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("execution-service-files-")]
        self.assertEqual([name for name in left if os.path.isdir(os.path.join(tempfile.gettempdir(), name, "f1"))], [])

    def test_repeats_reports_that_the_service_could_not_take(self):
        self.service.outages = [("POST", "claims", 503), ("PUT", "compose", 500), ("POST", "complete", 429)]
        run = self.run_greet()
        self.service.end_of(run)
        self.assertEqual(len(self.service.of(run, "complete")), 1)
        self.assertEqual(self.service.outages, [])

    def test_registers_again_after_a_404(self):
        self.service.until(lambda: self.service.worker)
        with self.service.changed:
            self.service.worker = None
        self.service.until(lambda: self.service.registrations == 2)

    def test_describes_an_error_by_the_frames_of_the_author(self):
        error = self.service.end_of(self.run_greet("fail"))["error"]
        self.assertEqual((error["name"], error["message"]), ("ValueError", "no greeting"))
        self.assertRegex(error["stack"], r'^File ".*greetings\.py", line \d+, in greet\nFile ".*greetings\.py", line \d+, in fail$')
        self.assertEqual(error["step"], "fail")

    def test_fails_an_attempt_whose_process_ends_and_goes_on(self):
        end = self.service.end_of(self.run_greet("exit"))
        self.assertEqual(end["reason"], "workflowExited")
        self.assertEqual(end["error"]["message"], "The workflow's process exited with code 3.")
        self.assertEqual(self.service.end_of(self.run_greet())["outcome"], "succeeded")

    def test_cancels_at_the_next_call(self):
        run = self.run_greet("block")
        self.service.until(lambda: self.service.events(run))
        self.service.cancelled.add(run)
        self.assertEqual(self.service.end_of(run)["outcome"], "cancelled")
        self.assertNotIn("leaving", [each.get("message") for each in self.service.events(run)])

    def test_stops_an_attempt_whose_lease_ends_without_a_renewal(self):
        run = self.run_greet("block")
        self.service.until(lambda: self.service.events(run) and self.service.executing)
        with self.service.changed:
            self.service.outages = [("POST", "leases", 503)] * 100
        self.service.until(lambda: self.service.executing == [])
        self.assertEqual(self.service.of(run, "complete"), [])
        self.assertEqual(self.stop(), 0)
        self.assertIn(f"run {run}: the lease of attempt 7 is over", self.output)

    def test_kills_an_attempt_that_ignores_its_time_limit(self):
        self.assertEqual(self.service.end_of(self.run_greet("stuck", timeLimitSeconds=0.1))["outcome"], "timedOut")

    def test_suspends_and_goes_on_with_the_answer(self):
        run = self.run_greet("ask")
        suspend = self.service.end_of(run, "suspend")
        wait = {"kind": "answer", "name": "approval", "timeoutSeconds": 604800}
        self.assertEqual(suspend, {"waits": [wait], "names": ["approval"], "suspend": True})
        steps = [{"name": "compose", "value": {"text": "Hi"}}, {"name": "approval", "value": {"ok": True, "value": {"approved": True}}}]
        run = self.run_greet("ask", steps=steps, hasWaits=True)
        self.assertEqual(self.service.end_of(run)["output"], {"text": "Hi"})
        self.assertEqual(self.service.of(run, "suspend"), [])
        # What the first part has reported.
        self.assertEqual(self.service.events(run), [])
        self.assertEqual(len(self.service.of(run, "artifacts")), 1)

    def leave(self, mode):
        return self.service.queue(workflowId="python-leave", variableData={"mode": mode})

    def logs_of(self, run):
        return [each["message"] for each in self.service.events(run) if each["type"] == "log"]

    def test_leaves_nothing_of_a_run_for_the_next_one_in_its_process(self):
        before = self.service.end_of(self.leave("look"))["output"]
        left = self.leave("leave")
        self.assertEqual(self.service.end_of(left)["error"]["message"], "left")
        self.assertEqual(self.logs_of(left), ["of the first run"])
        looked = self.leave("look")
        after = self.service.end_of(looked)["output"]
        self.assertEqual(self.logs_of(looked), ["hello"])
        self.service.end_of(self.leave("leave"))
        seeded = self.service.end_of(self.leave("look"))["output"]
        self.assertEqual(len({each.pop("random") for each in (before, after, seeded)}), 3)
        self.assertEqual(after, before)
        # One that has a child process is not used again.
        self.assertEqual(self.service.end_of(self.leave("child"))["output"]["pid"], before["pid"])
        self.assertNotEqual(self.service.end_of(self.leave("look"))["output"]["pid"], before["pid"])

    def test_reports_what_programs_and_libraries_write(self):
        run = self.leave("program")
        self.service.end_of(run)
        self.assertEqual(self.logs_of(run), ["of a program", "its end", "of a libraryof a stream"])
        self.service.end_of(self.leave("look"))
        self.stop()
        self.assertNotIn("of a", self.output)

    def test_says_why_an_attempt_is_not_repeated_or_has_no_output(self):
        final = self.service.end_of(self.leave("final"))
        self.assertEqual((final["reason"], final["error"]["name"]), ("nonRetryable", "NonRetryableError"))
        large = self.service.end_of(self.leave("large"))
        self.assertEqual((large["reason"], large["error"]["name"]), ("outputInvalid", "OutputInvalid"))
        self.assertIn("The output has 1048587 bytes as JSON; at most 1048576 are allowed", large["error"]["message"])
        self.service.outages = [("POST", "complete", 413)]
        refused = self.service.end_of(self.leave("look"))
        self.assertEqual((refused["reason"], refused["error"]["message"]), ("outputInvalid", "The output: Again."))

    def test_executes_an_async_workflow(self):
        queued = {"workflowId": "python-async", "variableData": {"mode": "greet"}}
        run = self.service.queue(**queued)
        suspend = self.service.end_of(run, "suspend")
        self.assertEqual([each["name"] for each in suspend["waits"]], ["approval", "call", "pause"])
        self.assertEqual((suspend["names"], suspend["suspend"]), (["approval", "call", "pause"], True))
        outcomes = {
            **{f"greet {name}": f"Hello, {name}!" for name in ("Bob", "Ada")},
            **{"pause": None, "approval": {"ok": True, "value": True}, "call": {"ok": True, "output": {"pid": 1}}},
        }
        steps = [{"name": name, "value": value} for name, value in outcomes.items()]
        run = self.service.queue(**queued, steps=steps, hasWaits=True)
        self.assertEqual(self.service.end_of(run)["output"], ["Hello, Ada!", "Hello, Bob!", True, ["pid"]])
        self.assertEqual(self.logs_of(run), ["gone on"])
        blocked = self.service.queue(workflowId="python-async", variableData={"mode": "block"})
        self.service.until(lambda: self.service.events(blocked))
        self.service.cancelled.add(blocked)
        self.assertEqual(self.service.end_of(blocked)["outcome"], "cancelled")

    def test_hands_back_what_it_executes_when_it_stops(self):
        run = self.run_greet("stuck")
        self.service.until(lambda: self.service.events(run))
        self.assertEqual(self.stop(), 0)
        self.assertEqual(self.service.of(run, "hand-back"), [{}])
        self.assertTrue(self.service.deleted)


class StartTest(unittest.TestCase):
    def test_says_why_it_does_not_start(self):
        service = FakeService()
        self.addCleanup(service.close)
        command = [sys.executable, "-m", "execution_service", "worker", "--url", service.url]

        def start(key, source):
            environment = {**os.environ, "API_KEY": key}
            return subprocess.run([*command, source], env=environment, capture_output=True, text=True, timeout=30)

        self.assertIn("does not accept the API key", start("other", WORKFLOWS).stderr)
        self.assertIn("No module named 'missing'", start("key", "missing").stderr)
        self.assertIn("API_KEY is not set", start("", WORKFLOWS).stderr)


if __name__ == "__main__":
    unittest.main()
