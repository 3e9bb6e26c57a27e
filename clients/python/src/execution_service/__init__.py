"""Workflows, workers and a client for execution-service."""

from ._version import __version__ as __version__
from .client import Client, QueueOptions, RunInfo
from .errors import (
    ApiError,
    CalledRunFailed,
    Cancelled,
    ExecutionServiceError,
    InvalidMember,
    InvalidValue,
    LoadError,
    Refused,
    RunError,
    RunFailed,
    SchemaError,
    ServiceUnreachable,
    Suspended,
    WaitTimedOut,
)
from .run import Call, Run
from .schema import Field
from .workflow import Concurrency, Retry, Throttle, Wait, Workflow, workflow

__all__ = [
    "ApiError",
    "Call",
    "CalledRunFailed",
    "Cancelled",
    "Client",
    "Concurrency",
    "ExecutionServiceError",
    "Field",
    "InvalidMember",
    "InvalidValue",
    "LoadError",
    "QueueOptions",
    "Refused",
    "Retry",
    "Run",
    "RunError",
    "RunFailed",
    "RunInfo",
    "SchemaError",
    "ServiceUnreachable",
    "Suspended",
    "Throttle",
    "Wait",
    "WaitTimedOut",
    "Workflow",
    "workflow",
]
