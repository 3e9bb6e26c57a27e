"""Calls that a type checker accepts, and calls that it refuses: an unnecessary comment is an error."""

from dataclasses import dataclass

from execution_service import Client, QueueOptions, Run, RunInfo, workflow


@dataclass
class Order:
    id: str


@dataclass
class Invoice:
    total: float


@workflow(id="invoice", version="1.0.0")
def invoice(run: Run, variables: Order) -> Invoice:
    return run.step("compute", compute, variables.id)


def compute(order_id: str) -> Invoice:
    return Invoice(float(len(order_id)))


def call(client: Client) -> None:
    total: float = client.run(invoice, Order("A-1001"), timeout=5, tags=["a"]).total
    queued: RunInfo[Invoice] = client.queue(invoice, Order("A-1001"), priority=3)
    by_id: Invoice = client.run("invoice", {"id": "A-1001"}, output=Invoice)
    options: QueueOptions = {"delay_seconds": 60, "idempotency_key": str(total)}
    client.queue("invoice", {"id": by_id.total}, **options)
    wrong: str = queued.output  # pyright: ignore[reportAssignmentType]
    client.queue(invoice, Order(wrong), tag=["a"])  # pyright: ignore[reportCallIssue]
    client.queue("invoice", {}, priority="high")  # pyright: ignore[reportCallIssue, reportArgumentType]
