"""Workflows of the tests."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from typing import Annotated

from execution_service import Field, Run, Wait, workflow


@dataclass
class Greeting:
    name: str
    mode: str = "greet"


@dataclass
class Greeted:
    text: str


@dataclass
class Approval:
    approved: bool


approval = Wait("approval", Approval, title="Greet?")


def compose(name: str) -> Greeted:
    return Greeted(f"Hello, {name}!")


def fail() -> None:
    raise ValueError("no greeting")


@workflow(id="python-greet", version="1.0.0", waits=[approval], time_limit_seconds=5, retry=1)
def greet(run: Run, variables: Greeting) -> Greeted:
    """Greet by name."""
    if variables.mode == "fail":
        run.step("fail", fail)
    if variables.mode == "exit":
        os._exit(3)
    if variables.mode == "block":
        while not run.cancelled.wait(0.01):
            run.progress(50)
        run.log("leaving")
    if variables.mode == "stuck":
        run.log("stuck")
        time.sleep(60)
    print("printed")
    logging.getLogger("author").warning("warned")
    greeted = run.step("compose", compose, variables.name)
    if variables.mode == "ask":
        answer = run.wait_for(approval)
        if not answer.approved:
            return Greeted("")
    run.artifact("greeting.txt", greeted.text)
    return greeted


@workflow(id="python-shop", version="1.0.0", secrets=["SHOP_TOKEN"], settings={"RETRIES": int})
def shop(run: Run) -> Greeted:
    return Greeted(f"{run.secrets['SHOP_TOKEN']} {run.settings['RETRIES'] + 1}")


@dataclass
class Document:
    file: Annotated[str, Field(format="file")]


@workflow(id="python-read", version="1.0.0")
def read(run: Run, variables: Document) -> Greeted:
    """Read a file."""
    run.log(f"reading {variables.file}")
    with open(variables.file, "rb") as content:
        size = len(content.read())
    return Greeted(f"{size} bytes of {os.path.basename(variables.file)} in {variables.file}")
