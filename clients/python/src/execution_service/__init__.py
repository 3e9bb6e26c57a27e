"""Workflows, workers and clients for execution-service."""

from ._version import __version__ as __version__
from .async_run import AsyncRun
from .calls import (
    BatchOptions,
    BulkAction,
    FileInfo,
    QueueOptions,
    RerunOptions,
    RunFilters,
    RunInfo,
    ScheduleInfo,
    ScheduleOptions,
)
from .client import AsyncClient, Client
from .errors import (
    ApiError,
    CalledRunFailed,
    Cancelled,
    ExecutionServiceError,
    InvalidMember,
    InvalidValue,
    LoadError,
    NonRetryableError,
    OutputInvalid,
    Refused,
    RunError,
    RunFailed,
    SchemaError,
    ServiceUnreachable,
    Suspended,
    WaitTimedOut,
)
from .run import Call, CallOptions, Run
from .schema import Field
from .workflow import Concurrency, Retry, Throttle, Wait, Workflow, workflow

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncRun",
    "BatchOptions",
    "BulkAction",
    "Call",
    "CallOptions",
    "CalledRunFailed",
    "Cancelled",
    "Client",
    "Concurrency",
    "ExecutionServiceError",
    "Field",
    "FileInfo",
    "InvalidMember",
    "InvalidValue",
    "LoadError",
    "NonRetryableError",
    "OutputInvalid",
    "QueueOptions",
    "Refused",
    "RerunOptions",
    "Retry",
    "Run",
    "RunError",
    "RunFailed",
    "RunFilters",
    "RunInfo",
    "ScheduleInfo",
    "ScheduleOptions",
    "SchemaError",
    "ServiceUnreachable",
    "Suspended",
    "Throttle",
    "Wait",
    "WaitTimedOut",
    "Workflow",
    "workflow",
]
