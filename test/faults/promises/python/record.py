"""Does in Python what record.ts does: steps with side effects, an artifact and waits, recorded in a file."""

import uuid
from dataclasses import dataclass

from execution_service import Run, Wait, workflow


@dataclass
class Variables:
    file: str


@dataclass
class Tokens:
    first: str
    second: str
    answer: int


answer = Wait("answer", int)


@workflow(id="python-record", version="1.0.0", waits=[answer], retry=3)
def record(run: Run, variables: Variables) -> Tokens:
    """Record what the steps do."""

    def write(*words: str) -> None:
        with open(variables.file, "a") as file:
            file.write(" ".join(words) + "\n")

    def act(name: str) -> str:
        def execute() -> str:
            fresh = str(uuid.uuid4())
            write("done", name, fresh)
            return fresh

        token = run.step(name, execute)
        write("seen", name, token)
        return token

    first = act("first")
    run.log(f"The first token is {first}")
    run.artifact("first.txt", first)
    run.sleep("pause", 1)
    answered = run.wait_for(answer)
    return Tokens(first, act("second"), answered)
