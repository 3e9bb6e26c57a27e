"""A workflow that leaves things behind in its process, and one that awaits."""

from __future__ import annotations

import asyncio
import io
import locale
import logging
import os
import random
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any, Dict, List

from execution_service import AsyncRun, NonRetryableError, Run, Wait, workflow

approval = Wait("approval", bool)


@dataclass
class Mode:
    mode: str = "look"


def look() -> Dict[str, Any]:
    umask = os.umask(0o022)
    os.umask(umask)
    return {
        "environment": os.environ.get("LEFT"),
        "directory": os.getcwd(),
        "umask": umask,
        "arguments": "left" in sys.argv,
        "level": logging.getLogger().level,
        "handlers": len(logging.getLogger().handlers),
        "locale": locale.setlocale(locale.LC_ALL),
    }


def leave() -> None:
    os.environ["LEFT"] = "x"
    os.chdir("/")
    os.umask(0)
    sys.argv.append("left")
    logging.getLogger().setLevel(logging.ERROR)
    logging.getLogger().addHandler(logging.NullHandler())
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    random.seed(1)
    print("of the first run", end="")
    sys.stdout = io.StringIO()


@workflow(id="python-leave", version="1.0.0")
def leaving(run: Run, variables: Mode) -> Dict[str, Any]:
    if variables.mode == "look":
        print("hello")
        return {**look(), "pid": os.getpid(), "random": random.random()}
    if variables.mode == "leave":
        leave()
        raise ValueError("left")
    if variables.mode == "child":
        subprocess.Popen(["sleep", "60"])
    if variables.mode == "program":
        subprocess.run([sys.executable, "-c", "print('of a program'); print('its end', end='')"], check=True)
        os.write(2, b"\nof a library")
        sys.__stdout__.write("of a stream")
    if variables.mode == "final":
        raise NonRetryableError("no such customer")
    if variables.mode == "large":
        return {"text": "x" * 2**20}
    return {"pid": os.getpid()}


@dataclass
class Job:
    id: uuid.UUID = field(default_factory=uuid.uuid4)


@workflow(id="python-factory", version="1.0.0", waits=[approval])
def make(run: Run, job: Job) -> List[str]:
    before = run.step("before", lambda: str(job.id))
    run.wait_for(approval)
    return [before, str(job.id)]


@workflow(id="python-async", version="1.0.0", waits=[approval])
async def awaiting(run: AsyncRun, variables: Mode) -> List[Any]:
    run.log("begun")
    if variables.mode == "block":
        await asyncio.sleep(60)
    greetings = await asyncio.gather(*(run.step(f"greet {name}", greet, name) for name in ("Ada", "Bob")))
    answered, called, _ = await asyncio.gather(
        run.wait_for(approval), run.call("call", leaving, Mode("child")), run.sleep("pause", 2.5)
    )
    run.log("gone on")
    return [*greetings, answered, list(called)]


async def greet(name: str) -> str:
    await asyncio.sleep(0.01)
    return f"Hello, {name}!"
