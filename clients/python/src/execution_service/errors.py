"""The exceptions of this package."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Sequence


class ExecutionServiceError(Exception):
    """The base class of the exceptions that this package raises for the service's part."""


class ServiceUnreachable(ExecutionServiceError, ConnectionError):
    """The service could not be reached, or the connection broke."""


class InvalidMember(NamedTuple):
    """A member of a request that the service refused."""

    #: A JSON Pointer into the body such as ``/variableData/path``, or the name of a parameter or header.
    location: str
    detail: str


class ApiError(ExecutionServiceError):
    """The service answered with a problem (RFC 9457)."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        *,
        type: str = "about:blank",
        errors: Sequence[InvalidMember] = (),
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        self.status = status
        #: Identifies the kind of problem, such as ``/docs/errors#not-found``.
        self.type = type
        self.title = title
        self.detail = detail
        #: The invalid members of the request.
        self.errors = tuple(errors)
        #: Identifies the request in the service's logs.
        self.request_id = request_id
        #: For how many seconds the service asks to wait.
        self.retry_after = retry_after
        members = "".join(f"\n  {location}: {text}" for location, text in self.errors)
        super().__init__(f"{status} {title}" + (f": {detail}" if detail else "") + members)


class RunError(NamedTuple):
    """Why the latest failed attempt of a run failed."""

    name: str
    message: str
    #: The calls in the workflow's own source, a line each. ``Client.get`` and ``Client.wait`` return it; lists do not.
    stack: Optional[str] = None
    #: The step that failed. As ``stack``.
    step: Optional[str] = None

    @classmethod
    def from_json(cls, error: Optional[Mapping[str, Any]], attempts: Sequence[Mapping[str, Any]] = ()) -> Optional[RunError]:
        if error is None:
            return None
        failed = [each["error"] for each in attempts if each["error"] is not None]
        latest = failed[-1] if failed and failed[-1]["name"] == error["name"] else error
        return cls(str(error["name"]), str(error["message"]), latest.get("stack"), latest.get("step"))

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" + (f' (in step "{self.step}")' if self.step else "")


class RunFailed(ExecutionServiceError):
    """A run has ended without an output."""

    def __init__(self, run_id: str, status: str, error: Optional[RunError], called_as: Optional[str] = None) -> None:
        self.run_id = run_id
        #: ``failed``, ``timedOut``, ``cancelled``, ``expired``; or ``deleted`` if the run no longer exists.
        self.status = status
        self.error = error
        subject = f"Run {run_id}" + (f', called as "{called_as}",' if called_as else "")
        reason = f": {error}" if error else "."
        super().__init__(f"{subject} has ended as {status}{reason}")


class CalledRunFailed(RunFailed):
    """A run that :meth:`Run.call` has called did not succeed."""


class NonRetryableError(ExecutionServiceError):
    """Ends the retries of a run, in a step or outside of one: raise it if another attempt would fail in the same way.

    The run fails with the reason ``nonRetryable``. A workflow may catch it as any other exception.
    """


class Refused(ExecutionServiceError):
    """The service refused what a workflow asked for: a call, a wait, a step's result or an artifact."""

    def __init__(self, name: str, message: str) -> None:
        #: The service's name of the error, such as ``CallRefused``, ``TooManyWaitingRuns`` or ``ArtifactRefused``.
        self.name = name
        super().__init__(message)


class WaitTimedOut(ExecutionServiceError, TimeoutError):
    """No answer came in time."""


class LoadError(ExecutionServiceError):
    """A module with workflows cannot be loaded."""


class SchemaError(ExecutionServiceError, TypeError):
    """A type cannot be expressed as a JSON Schema."""


class InvalidValue(ExecutionServiceError, ValueError):
    """A value does not match its type or schema."""

    def __init__(self, pointer: str, detail: str) -> None:
        #: A JSON Pointer into the value.
        self.pointer = pointer
        self.detail = detail
        super().__init__(f"{pointer or 'the value'}: {detail}")


class OutputInvalid(InvalidValue):
    """What a workflow has returned cannot be its output."""


# Like asyncio.CancelledError, these are no Exception: `except Exception` in a workflow must not swallow them.
class Cancelled(BaseException):
    """Raised by the next call of :class:`Run` when the run is cancelled, reaches its time limit, or its worker stops."""


class Suspended(BaseException):
    """Leaves a workflow's function while its run waits. The run goes on by calling the function again."""
