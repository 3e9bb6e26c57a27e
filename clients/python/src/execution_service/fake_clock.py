"""A clock for tests of workflows: the time of day moves by the times of waits and by ``time.sleep``, which take none."""

from __future__ import annotations

import contextlib
import datetime
import sys
import sysconfig
import time
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

_datetime, _date = datetime.datetime, datetime.date
_LIBRARIES = tuple(str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class RealClock:
    """The time of the process. Waits that a test skips do not change it."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def now(self) -> datetime.datetime:
        return _datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self._skipped)

    def skip(self, seconds: float) -> None:
        self._skipped += seconds

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        yield


class FakeClock(RealClock):
    def __init__(self, start: Optional[datetime.datetime] = None) -> None:
        super().__init__()
        self._start = start or _datetime.now(datetime.timezone.utc)
        if self._start.tzinfo is None:
            raise ValueError("`clock` has no time zone: use datetime(2026, 11, 20, tzinfo=timezone.utc), for example.")

    def now(self) -> datetime.datetime:
        return self._start + datetime.timedelta(seconds=self._skipped)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Replaces what tells the time, in ``time``, in ``datetime`` and in modules that have imported it from there."""
        classes = {_datetime: _fake_class(_datetime, self), _date: _fake_class(_date, self)}
        replaced: Dict[Any, Any] = {**classes, **{getattr(time, name): fake for name, fake in self._functions().items()}}
        changed: List[Tuple[Dict[str, Any], str, Any]] = []
        try:
            for module in list(sys.modules.values()):
                names = vars(module) if _may_change(module) else {}
                for name, value in list(names.items()):
                    if _is_key(value) and value in replaced:
                        changed.append((names, name, value))
                        names[name] = replaced[value]
            yield
        finally:
            for names, name, value in changed:
                names[name] = value

    def _functions(self) -> Dict[str, Callable[..., Any]]:
        monotonic, counter = time.monotonic, time.perf_counter

        def sleep(seconds: float) -> None:
            if seconds < 0:
                raise ValueError("sleep length must be non-negative")
            self.skip(seconds)

        return {
            "time": lambda: self.now().timestamp(),
            "time_ns": lambda: int(self.now().timestamp() * 1_000_000) * 1000,
            # These go on, since event loops and locks wait by them.
            "monotonic": lambda: monotonic() + self._skipped,
            "perf_counter": lambda: counter() + self._skipped,
            "sleep": sleep,
        }


def _is_key(value: Any) -> bool:
    return value is _datetime or value is _date or type(value) is types.BuiltinFunctionType


def _may_change(module: Any) -> bool:
    if module in (time, datetime):
        return True
    file = getattr(module, "__file__", None)
    return file is not None and not module.__name__.startswith("execution_service.") and not file.startswith(_LIBRARIES)


def _fake_class(real: Any, clock: FakeClock) -> Any:
    class Meta(type):
        """Equal to the real class, whose instances are its own."""

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, other: Any) -> bool:
            return issubclass(other, real)

        def __eq__(cls, other: Any) -> bool:
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

        def __call__(cls, *arguments: Any, **options: Any) -> Any:
            return real(*arguments, **options)

    def local(tz: Optional[datetime.tzinfo] = None) -> Any:
        return _datetime.fromtimestamp(clock.now().timestamp(), tz)

    members: Dict[str, Any] = {"today": staticmethod(lambda: local() if real is _datetime else local().date())}
    if real is _datetime:
        members["now"] = staticmethod(local)
        members["utcnow"] = staticmethod(lambda: clock.now().astimezone(datetime.timezone.utc).replace(tzinfo=None))
    return Meta(real.__name__, (real,), members)
