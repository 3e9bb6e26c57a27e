"""The process that executes attempts: it loads the author's modules, and knows neither the service nor its key."""

from __future__ import annotations

import importlib
import io
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import sys
import sysconfig
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set

from .errors import Cancelled, InvalidValue, LoadError, Suspended
from .run import Run, cut
from .workflow import Workflow, decode_settings

_PACKAGE = str(Path(__file__).parent) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def load_workflows(sources: Iterable[str]) -> Dict[str, Workflow[Any, Any]]:
    """The workflows of modules, files and directories, by id. :raises LoadError: with the reason."""
    workflows: Dict[str, Workflow[Any, Any]] = {}
    for source in sources:
        path = Path(source)
        files = sorted(path.glob("[!_]*.py")) if path.is_dir() else [path] if path.suffix == ".py" else []
        modules = [_load(file) for file in files if not file.name.startswith("test_")] if files else [_load(source)]
        for module in modules:
            for each in vars(module).values():
                if isinstance(each, Workflow) and workflows.setdefault(each.id, each) is not each:
                    raise LoadError(f"Two workflows have the id {each.id}; one is in {module.__name__}.")
    if not workflows:
        raise LoadError(f"No @workflow is in {', '.join(sources)}.")
    return workflows


def _load(source: Any) -> ModuleType:
    try:
        if isinstance(source, str):
            return importlib.import_module(source)
        file = source.resolve()
        # As Python does for a program, so that the file can import its neighbours.
        if str(file.parent) not in sys.path:
            sys.path.insert(0, str(file.parent))
        return importlib.import_module(file.stem)
    except BaseException as error:
        stack = describe_error(error)["stack"]
        raise LoadError(f"{source} cannot be loaded: {type(error).__name__}: {error}" + (f"\n{stack}" if stack else ""))


def describe_error(error: BaseException, own: Optional[str] = None) -> Dict[str, Any]:
    """Name, message and the author's frames of an error and its causes, each after those that led to it."""
    lines: List[str] = []
    seen: Set[int] = set()
    current: Optional[BaseException] = error
    while current is not None and id(current) not in seen and len(seen) <= 5:
        seen.add(id(current))
        if current is not error:
            lines.append(f"Caused by {type(current).__name__}: {cut(str(current))}")
        for frame in traceback.extract_tb(current.__traceback__):
            is_own = own is not None and frame.filename.startswith(own)
            is_library = frame.filename.startswith(_PACKAGE) or frame.filename.startswith("<frozen")
            if is_own or not is_library and not frame.filename.startswith(_LIBRARIES):
                lines.append(f'File "{_relative(frame.filename)}", line {frame.lineno}, in {frame.name}')
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return {"name": type(error).__name__, "message": cut(str(error)), "stack": "\n".join(lines) or None}


def _relative(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


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
                    self.run.abort(message["reason"])
                    # Wakes a call that waits for an answer of the worker.
                    self._replies.put({"type": "aborted"})
        except (EOFError, OSError):
            # The worker has ended.
            os._exit(0)

    def serve(self, workflows: Dict[str, Workflow[Any, Any]]) -> None:
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
                secrets=start["accountSecrets"],
                settings=decode_settings(workflow, start["settings"]),
            )
            threads = threading.active_count()
            ended = execute(workflow, run, start["variableData"])
            self.run = None
            _flush_output()
            clean = threading.active_count() <= threads and not multiprocessing.active_children()
            self.send({**ended, "reusable": clean})


def execute(workflow: Workflow[Any, Any], run: Run, variables: Any) -> Dict[str, Any]:
    """Calls a workflow's function, and describes how it ended."""
    try:
        return {"type": "returned", "output": workflow.execute(run, variables)}
    except (Suspended, Cancelled):
        return {"type": "left"}
    except BaseException as error:
        name = getattr(workflow.function, "__code__", None)
        own = str(Path(name.co_filename).parent) + os.sep if name else None
        described = describe_error(error, own)
        if isinstance(error, SystemExit):
            described["message"] = f"The workflow has called sys.exit({error.code!r})."
        if isinstance(error, InvalidValue) and error.pointer[:10] != "/variables":
            described["message"] = cut(f"The output is not JSON: {error}") if run.failed_step is None else described["message"]
        return {"type": "threw", "error": {**described, "step": run.failed_step}}


class _Output(io.TextIOBase):
    """Lines of ``print`` during an attempt become lines of the run's log; others stay where they were."""

    def __init__(self, host: _Host, level: str, original: Any) -> None:
        self._host, self._level, self._original = host, level, original
        self._text = ""
        self._lock = threading.RLock()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._original.fileno())

    def write(self, text: str) -> int:
        if self._host.run is None:
            self._original.write(text)
            return len(text)
        with self._lock:
            *lines, self._text = (self._text + text).split("\n")
            if len(self._text) > 8192:
                lines, self._text = [*lines, self._text], ""
            for line in lines:
                self._host.report({"type": "log", "level": self._level, "message": cut(line)})
        return len(text)

    def flush(self) -> None:
        self._original.flush()

    def end(self) -> None:
        with self._lock:
            text, self._text = self._text, ""
            if text:
                self._host.report({"type": "log", "level": self._level, "message": cut(text)})


def _flush_output() -> None:
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
            print(self.format(record), file=sys.__stderr__)
            return
        level = "error" if record.levelno >= logging.ERROR else "warn" if record.levelno >= logging.WARNING else "info"
        self._host.report({"type": "log", "level": level, "message": cut(self.format(record))})


def _main(connection: multiprocessing.connection.Connection, sources: Sequence[str]) -> None:
    # The worker decides when an attempt ends, also after Ctrl+C, which every process of the terminal gets.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    host = _Host(connection)
    sys.stdout = _Output(host, "info", sys.stdout)
    sys.stderr = _Output(host, "warn", sys.stderr)
    logging.getLogger().addHandler(_LogHandler(host))
    logging.getLogger().setLevel(logging.INFO)
    try:
        workflows = load_workflows(sources)
        definitions = [each.definition() for each in workflows.values()]
    except Exception as error:
        host.send({"type": "loadFailed", "message": str(error)})
        return
    threading.Thread(target=host.listen, daemon=True).start()
    host.send({"type": "loaded", "workflows": definitions})
    host.serve(workflows)


class AttemptProcess:
    """A process as its worker sees it."""

    def __init__(self, sources: Sequence[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, list(sources)))
        self._process.start()
        theirs.close()

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
