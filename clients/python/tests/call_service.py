"""Calls a running service, whose URL is the argument, with the key of API_KEY: a program of a caller."""

import asyncio
import datetime
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from execution_service import ApiError, AsyncClient, Client, RunFailed


@dataclass
class Greeted:
    greeting: str


with Client(sys.argv[1]) as client:
    result = {}
    result["output"] = client.run("greet", {"name": "Ada"}, timeout=30, output=Greeted).greeting
    queued = client.queue("greet", {"name": "Bob"}, tags=["a", "b"], priority=3)
    result["types"] = sorted({event["type"] for event in client.follow(queued)})
    result["status"] = client.wait(queued, timeout=30).status
    result["tags"] = queued.raw["tags"]
    result["same"] = len({client.queue("greet", {"name": "C"}, idempotency_key="k").id for _ in range(2)})
    later = client.queue("greet", {"name": "Dee"}, delay_seconds=3600)
    try:
        client.wait(later, timeout=1)
    except TimeoutError as error:
        result["timeout"] = str(error).replace(later.id, "ID")
    client.cancel(later)
    try:
        client.get(later).output
    except RunFailed as error:
        result["cancelled"] = error.status
    try:
        client.queue("greet", {"name": 1})
    except ApiError as error:
        result["invalid"] = [error.status, error.type, [each.location for each in error.errors]]
    result["listed"] = [run.id == queued.id for run in client.list(tag="a", limit=1)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "r\u00e9sum\u00e9.txt"
        path.write_bytes(b"content" * 1000)
        file = client.upload(path)
        result["file"] = [file.name, file.media_type, client.download(file) == path.read_bytes()]
        result["sameFile"] = client.upload(path.read_bytes(), name=path.name).id == file.id
    client.delete_file(file)
    again = client.wait(client.rerun(queued, {"name": "Eve"}, tags=["again"]), timeout=30)
    result["again"] = [again.output["greeting"], again.raw["rerunOf"] == queued.id]
    result["many"] = [run.status for run in client.queue_many("greet", [{"name": "F"}, {"name": "G"}], tags=["bulk"], delay_seconds=60)]
    action = client.bulk_cancel(tag="bulk", created_after=datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc))
    while not action.is_finished:
        time.sleep(0.05)
        action = client.bulk_action(action)
    result["bulk"] = action.done
    schedule = client.create_schedule("greet", {"name": "H"}, interval=datetime.timedelta(hours=1), name="hourly")
    minutes = (schedule.next_runs_at[1] - schedule.next_runs_at[0]).total_seconds() / 60
    paused = client.update_schedule(schedule, paused=True)
    result["schedule"] = [minutes, paused.paused, [each.name for each in client.schedules()], client.schedule(schedule).name]
    result["triggered"] = client.wait(client.trigger_schedule(schedule), timeout=30).status
    client.delete_schedule(schedule)


async def call():
    async with AsyncClient(sys.argv[1]) as client:
        outputs = await asyncio.gather(*(client.run("greet", {"name": name}, timeout=30, output=Greeted) for name in "IJK"))
        later = await client.queue("greet", {"name": "L"}, delay_seconds=3600)
        events = [event["type"] async for event in client.follow(await client.queue("greet", {"name": "M"}))]
        started = time.monotonic()
        try:
            await asyncio.wait_for(client.wait(later), 0.5)
        except asyncio.TimeoutError:
            pass
        # The thread that waited is free again.
        await asyncio.get_running_loop().run_in_executor(None, client._threads.shutdown)
        return [sorted(each.greeting for each in outputs), events[-1], time.monotonic() - started < 20]


result["async"] = asyncio.run(call())
print(json.dumps(result))
