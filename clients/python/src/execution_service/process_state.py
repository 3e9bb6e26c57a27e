"""What an attempt changes in its process, which must not reach the next one: it is put back, or the process ends."""

from __future__ import annotations

import contextlib
import decimal
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from typing import Any, Dict, List


class ProcessState:
    """The state after the modules have been loaded, to which the process returns after each attempt.

    What the author's modules keep in their own variables stays.
    """

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._directory = os.getcwd()
        self._umask = _read_umask()
        self._streams = (sys.stdin, sys.stdout, sys.stderr)
        self._arguments, self._path = list(sys.argv), list(sys.path)
        self._hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
        self._locale = locale.setlocale(locale.LC_ALL)
        self._warnings = list(warnings.filters)
        self._loggers = _read_loggers()
        self._decimals = decimal.getcontext().copy()
        self._signals = _read_signals()
        self._threads = set(threading.enumerate())

    def restore(self) -> bool:
        """Puts back what can be. Returns whether the process may execute another attempt: nothing of this one goes on in it."""
        if dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        os.umask(self._umask)
        sys.stdin, sys.stdout, sys.stderr = self._streams
        sys.argv[:], sys.path[:] = self._arguments, self._path
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._hooks
        if locale.setlocale(locale.LC_ALL) != self._locale:
            locale.setlocale(locale.LC_ALL, self._locale)
        filters: Any = warnings.filters
        filters[:] = self._warnings
        decimal.setcontext(self._decimals.copy())
        # The next attempt must not draw the numbers that this one has seeded.
        random.seed()
        for name, state in self._loggers.items():
            _restore_logger(logging.getLogger(name) if name else logging.root, state)
        for number, handler in _read_signals().items():
            if handler != self._signals[number]:
                with contextlib.suppress(TypeError):  # One that was not set by Python.
                    signal.signal(number, self._signals[number])
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            os.chdir(self._directory)
        except OSError:
            return False
        return set(threading.enumerate()) <= self._threads and not _has_children()


def _read_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _read_loggers() -> Dict[str, Any]:
    loggers = {name: each for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)}
    return {
        name: (each.level, each.propagate, each.disabled, list(each.handlers), list(each.filters))
        for name, each in {"": logging.root, **loggers}.items()
    }


def _restore_logger(logger: logging.Logger, before: Any) -> None:
    level, logger.propagate, logger.disabled, logger.handlers[:], logger.filters[:] = before
    if logger.level != level:
        logger.setLevel(level)


#: Those for which programs set handlers; to read all 64 takes most of the time.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGVTALRM")
    if hasattr(signal, name)
]


def _read_signals() -> Dict[int, Any]:
    return {number: signal.getsignal(number) for number in _SIGNALS}


def _has_children() -> bool:
    """Whether a process is left that the attempt has started, by whatever means."""
    if os.name != "posix":
        return False
    seen: List[int] = []
    with contextlib.suppress(ChildProcessError):
        while not seen or seen[-1] != 0:
            # Collects those that have ended.
            seen.append(os.waitpid(-1, os.WNOHANG)[0])
        return True
    return False
