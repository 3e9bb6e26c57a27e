"""Calls that type checkers accept, and calls that they refuse: an unnecessary comment is an error."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from execution_service import AsyncClient, AsyncRun, Client, QueueOptions, Run, RunInfo, Wait, Workflow, workflow
from execution_service.testing import run_workflow


@dataclass
class Order:
    id: str


@dataclass
class Approval:
    approved: bool


@dataclass
class Invoice:
    total: float


approval = Wait("approval", Approval)


@workflow(id="invoice", version="1.0.0", waits=[approval])
def invoice(run: Run, variables: Order) -> Invoice:
    approved: bool = run.wait_for(approval).approved
    run.call("later", later, Order(str(approved)))
    run.call("later", later, Approval(True))  # type: ignore
    return run.step("compute", compute, variables.id)


@workflow(id="later", version="1.0.0", waits=[approval])
async def later(run: AsyncRun, variables: Order) -> Invoice:
    answer, total = await asyncio.gather(run.wait_for(approval), run.call("count", count))
    wrong: str = answer.approved  # type: ignore
    computed = await run.step("compute", compute_later, variables.id)
    await run.step("compute", compute_later, 1)  # type: ignore
    return Invoice(computed.total + total + len(wrong))


@workflow(id="count", version="1.0.0")
def count(run: Run) -> int:
    return 1


def compute(order_id: str) -> Invoice:
    return Invoice(float(len(order_id)))


async def compute_later(order_id: str) -> Invoice:
    return compute(order_id)


def call(client: Client) -> None:
    total: float = client.run(invoice, Order("A-1001"), timeout=5, tags=["a"]).total
    queued: RunInfo[Invoice] = client.queue(invoice, Order("A-1001"), priority=3)
    by_id: Invoice = client.run("invoice", {"id": "A-1001"}, output=Invoice)
    options: QueueOptions = {"delay_seconds": 60, "idempotency_key": str(total)}
    client.queue("invoice", {"id": by_id.total}, **options)
    later_total: float = client.run(later, Order("A-1001")).total
    counted: int = client.run(count)
    client.answer(queued, approval, Approval(True))
    client.create_schedule(invoice, Order("A"), cron="0 7 * * *")
    tested: Invoice = run_workflow(invoice, Order("A"), clock="fake", answers={"approval": counted + later_total}).output

    wrong: str = queued.output  # type: ignore
    client.queue(invoice, Invoice(1))  # type: ignore
    client.queue(invoice)  # type: ignore
    client.queue(invoice, {"id": tested.total})  # type: ignore
    client.queue(count, Order(wrong))  # type: ignore
    client.queue(invoice, Order(wrong), tag=["a"])  # type: ignore
    client.queue("invoice", {}, priority="high")  # type: ignore
    client.answer(queued, approval, Invoice(1))  # type: ignore
    client.answer(queued, approval, {"approved": True})  # type: ignore
    client.create_schedule(invoice, Invoice(1), cron="0 7 * * *")  # type: ignore
    client.bulk_cancel(workflow="invoice")  # type: ignore


async def call_later(client: AsyncClient) -> None:
    total: float = (await client.run(invoice, Order("A-1001"))).total
    runs = await client.queue_many(later, [Order("A"), Order(str(total))])
    async for event in client.follow(runs[0]):
        print(event)
    await client.queue(later, Invoice(1))  # type: ignore
    await client.answer(runs[0], approval, Order("A"))  # type: ignore


declared: Workflow[Order, Invoice] = later
