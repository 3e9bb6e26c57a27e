"""Files and modules with workflows."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLOW = """
from execution_service import Run, workflow
{extra}
@workflow(id="{id}", version="1.0.0")
def flow(run: Run) -> str: ...
"""


class LoadingTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def write(self, name, id, extra=""):
        file = self.directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(FLOW.format(id=id, extra=extra))
        return str(file)

    def load(self, *sources):
        code = "import sys, json; from execution_service.loading import load_workflows; print(*load_workflows(sys.argv[1:]))"
        return subprocess.run([sys.executable, "-c", code, *sources], capture_output=True, text=True, timeout=30)

    def test_loads_files_of_any_name(self):
        names = ["email", "calendar", "json", "queue", "token", "string", "report.v2", "with-hyphen", "Zürich", "requests"]
        for name in names:
            self.write(f"flows/{name}.py", f"flow-of-{name.replace('ü', 'u')}", "import email.message, json, queue")
        self.write("flows/_shared.py", "shared")
        self.write("flows/test_flows.py", "test")
        tasks = [self.write(f"{each}/tasks.py", f"tasks-{each}", "import helper") for each in ("a", "b")]
        (self.directory / "a" / "helper.py").write_text("")
        loaded = self.load(str(self.directory / "flows"), *tasks)
        self.assertEqual(loaded.stderr, "")
        expected = [f"flow-of-{name.replace('ü', 'u')}" for name in names] + ["tasks-a", "tasks-b"]
        self.assertEqual(sorted(loaded.stdout.split()), sorted(expected))

    def test_takes_a_file_that_another_imports_once(self):
        self.write("shared_flow.py", "shared")
        self.write("user.py", "user", "from shared_flow import flow as other")
        loaded = self.load(str(self.directory))
        self.assertEqual(sorted(loaded.stdout.split()), ["shared", "user"], loaded.stderr)

    def test_names_the_file_and_the_line_of_what_cannot_be_loaded(self):
        two = [self.write("one.py", "same"), self.write("two.py", "same")]
        self.assertIn(f"Two workflows have the id same: one is in {two[0]}, one in {two[1]}.", self.load(*two).stderr)
        (self.directory / "broken.py").write_text("x = 1\ndef\n")
        self.assertRegex(self.load(str(self.directory / "broken.py")).stderr, r"broken\.py cannot be loaded: SyntaxError: .*broken\.py, line 2")
        (self.directory / "failing.py").write_text("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('no') from error\n")
        stderr = self.load(str(self.directory / "failing.py")).stderr
        self.assertRegex(stderr, r"ValueError: no\nFile .*failing\.py., line 4.*\nCaused by ZeroDivisionError: division by zero\nFile .*line 2")
        self.assertIn("No @workflow is in", self.load("json").stderr)


if __name__ == "__main__":
    unittest.main()
