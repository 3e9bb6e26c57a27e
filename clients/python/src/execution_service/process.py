"""The process that executes attempts: it loads the author's modules, and knows neither the service nor its key."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from .error_description import describe_error
from .errors import Cancelled, LoadError, NonRetryableError, OutputInvalid, Suspended
from .loading import load_workflows
from .process_state import ProcessState
from .run import Run
from .workflow import Workflow, decode_settings

class _Host:
    """Executes one attempt after the other, and is the channel of its run."""

    def __init__(self, connection: multiprocessing.connection.Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._starts: queue.SimpleQueue[Dict[str, Any]] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Dict[str, Any]] = queue.SimpleQueue()
        self.run: Optional[Run] = None

    def send(self, message: Dict[str, Any]) -> None:
        content = json.dumps(message).encode()
        with self._sending:
            self._connection.send_bytes(content)

    def report(self, event: Dict[str, Any]) -> None:
        self.send({"type": "event", "event": event})

    def ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        with self._asking:
            self.send(request)
            return self._replies.get()

    def listen(self) -> None:
        try:
            while True:
                message = json.loads(self._connection.recv_bytes())
                if message["type"] == "start":
                    self._starts.put(message)
                elif message["type"] != "abort":
                    self._replies.put(message)
                elif self.run is not None:
                    # Before the process is killed, if the function goes on.
                    _flush_output()
                    self.run.abort(message["reason"])
                    # Wakes a call that waits for an answer of the worker.
                    self._replies.put({"type": "aborted"})
        except (EOFError, OSError):
            # The worker has ended.
            os._exit(0)

    def serve(self, workflows: Dict[str, Workflow[Any, Any]]) -> None:
        state = ProcessState()
        while True:
            start = self._starts.get()
            workflow = workflows[start["workflowId"]]
            self._replies = queue.SimpleQueue()
            self.run = run = Run(
                self,
                id=start["runId"],
                attempt=start["number"],
                waits=workflow.waits,
                results={each["name"]: each["value"] for each in start["steps"]},
                has_waited=start["hasWaits"],
                secrets=start["accountSecrets"],
                settings=decode_settings(workflow, start["settings"]),
            )
            ended = execute(workflow, run, start["variableData"])
            reusable = state.restore()
            _flush_output()
            self.run = None
            self.send({**ended, "reusable": reusable})


def execute(workflow: Workflow[Any, Any], run: Run, variables: Any) -> Dict[str, Any]:
    """Calls a workflow's function, and describes how it ended."""
    try:
        return {"type": "returned", "output": workflow.execute(run, variables)}
    except BaseException as error:
        if has_left(error, run):
            return {"type": "left"}
        code = getattr(workflow.function, "__code__", None)
        described = describe_error(error, str(Path(code.co_filename).parent) if code else None)
        if isinstance(error, SystemExit):
            described["message"] = f"The workflow has called sys.exit({error.code!r})."
        reasons = {OutputInvalid: "outputInvalid", NonRetryableError: "nonRetryable"}
        reason = next((reason for kind, reason in reasons.items() if isinstance(error, kind)), "workflowFailed")
        return {"type": "threw", "reason": reason, "error": {**described, "step": run.failed_step}}


def has_left(error: BaseException, run: Run) -> bool:
    """Whether the function has ended because the run waits or is to end, rather than by an error of its own."""
    if isinstance(error, (Suspended, Cancelled)) or run.is_suspended:
        return True
    # A group of tasks raises a group of what has cancelled them.
    return run.cancelled.is_set() and (isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception))


class _Output(io.TextIOBase):
    """Lines of ``print`` during an attempt become lines of the run's log; others stay where they were."""

    def __init__(self, host: _Host, level: str, number: int) -> None:
        self._host, self._level, self._number = host, level, number
        self._original = open(_copy(number), "w", buffering=1, errors="backslashreplace")
        self._text = ""
        self._lock = threading.RLock()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, text: str) -> int:
        run = self._host.run
        if run is None:
            self._original.write(text)
            return len(text)
        with self._lock:
            *lines, self._text = (self._text + text).split("\n")
            if len(self._text) > 8192:
                lines, self._text = [*lines, self._text], ""
            for line in lines:
                run.report_line(self._level, line)
        return len(text)

    def flush(self) -> None:
        self._original.flush()

    def end(self) -> None:
        """Reports what has no newline yet."""
        run = self._host.run
        with self._lock:
            text, self._text = self._text, ""
            if text and run is not None:
                run.report_line(self._level, text)


def _copy(number: int) -> int:
    try:
        return os.dup(number)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)  # The worker was started without it.


def _flush_output() -> None:
    for original in (sys.__stdout__, sys.__stderr__):
        if original is not None:
            original.flush()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Output):
            stream.end()


class _LogHandler(logging.Handler):
    def __init__(self, host: _Host) -> None:
        super().__init__()
        self._host = host
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        run = self._host.run
        if run is None:
            print(self.format(record), file=sys.stderr)
            return
        level = "error" if record.levelno >= logging.ERROR else "warn" if record.levelno >= logging.WARNING else "info"
        run.report_line(level, self.format(record))


def _main(connection: multiprocessing.connection.Connection, output: Any, sources: Sequence[str]) -> None:
    # The worker decides when an attempt ends, also after Ctrl+C, which every process of the terminal gets.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    host = _Host(connection)
    sys.stdout = _Output(host, "info", 1)
    sys.stderr = _Output(host, "warn", 2)
    logging.getLogger().addHandler(_LogHandler(host))
    logging.getLogger().setLevel(logging.INFO)
    try:
        workflows = load_workflows(sources)
        definitions = [each.definition() for each in workflows.values()]
    except Exception as error:
        host.send({"type": "loadFailed", "message": str(error)})
        return
    threading.Thread(target=host.listen, daemon=True).start()
    if output is not None:
        # What programs that the workflow starts write, and libraries that are not Python.
        for number in (1, 2):
            os.dup2(output.fileno(), number)
    host.send({"type": "loaded", "workflows": definitions})
    host.serve(workflows)


class AttemptProcess:
    """A process as its worker sees it."""

    def __init__(self, sources: Sequence[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        #: What it and its descendants write without `print`; `None` where the system has no such pipes, or at its end.
        self.output: Any = None
        output: Any = None
        self._line = b""
        if os.name == "posix":
            self.output, output = context.Pipe(duplex=False)
            os.set_blocking(self.output.fileno(), False)
        self._process = context.Process(target=_main, args=(theirs, output, list(sources)))
        self._process.start()
        theirs.close()
        if output is not None:
            output.close()

    def load(self, timeout: float = 60) -> List[Dict[str, Any]]:
        """Waits until the modules are loaded, and returns their workflows. :raises LoadError: if they are not."""
        try:
            if not self.connection.poll(timeout):
                raise LoadError(f"The modules have not been loaded within {timeout:g} seconds.")
            message = self.receive()
        except (EOFError, OSError):
            raise LoadError(f"A module ended the process that loads it. {self.describe_end()['message']}") from None
        if message["type"] == "loadFailed":
            raise LoadError(message["message"])
        workflows: List[Dict[str, Any]] = message["workflows"]
        return workflows

    def send(self, message: Dict[str, Any]) -> None:
        try:
            self.connection.send_bytes(json.dumps(message).encode())
        except OSError:
            pass  # It has ended, which the next `receive` notices.

    def receive(self) -> Dict[str, Any]:
        """:raises EOFError: when the process has ended."""
        message: Dict[str, Any] = json.loads(self.connection.recv_bytes())
        return message

    def read_lines(self, *, all: bool = False) -> List[str]:
        """The lines of its output so far. :param all: also the rest that has no newline."""
        content = self._line + self._read_output()
        *lines, self._line = content.split(b"\n")
        if all or len(self._line) > 8192:
            lines, self._line = [*lines, *([self._line] if self._line else [])], b""
        return [line.decode("utf-8", "replace") for line in lines]

    def _read_output(self) -> bytes:
        content = b""
        try:
            # Not more at once, though a program writes faster than the service reads.
            while self.output is not None and len(content) < 1_000_000:
                read = os.read(self.output.fileno(), 65_536)
                content += read
                if not read:
                    self.output.close()
                    self.output = None
        except BlockingIOError:
            pass
        return content

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def describe_end(self) -> Dict[str, Any]:
        self._process.join(5)
        code = self._process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return {"name": "ProcessKilled", "message": f"The workflow's process was killed by {name}."}
        return {"name": "ProcessExit", "message": f"The workflow's process exited with code {code}."}

    def kill(self) -> None:
        """Ends the process, and on POSIX also those that it has started."""
        pid = self._process.pid
        if pid is not None and hasattr(os, "killpg"):
            try:
                os.killpg(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        self._process.kill()
        self._process.join(5)
        self.connection.close()
        if self.output is not None:
            self.output.close()
            self.output = None
