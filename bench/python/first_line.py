"""Workflows of the benchmark `remote-workers`."""

import time

from execution_service import Run, workflow


@workflow(id="python-first-line", version="1.0.0")
def first_line(run: Run, variables: dict) -> float:
    """Return the time of the first line."""
    return time.time() * 1000


@workflow(id="python-one-step", version="1.0.0")
def one_step(run: Run, variables: dict) -> float:
    """Store the time of the first line as a step."""
    run.log("A line")
    return run.step("now", lambda: time.time() * 1000)
