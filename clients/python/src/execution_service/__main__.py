"""``python -m execution_service``: runs a worker, or prints what it would register."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time

from ._version import __version__
from .errors import ExecutionServiceError
from .process import AttemptProcess
from .worker import Worker


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        return json.dumps({"time": at, "level": record.levelname.lower(), "msg": record.getMessage()})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m execution_service", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    worker = commands.add_parser("worker", help="execute runs; API_KEY has a key with the scope runs:execute")
    worker.add_argument("--url", default="http://127.0.0.1:3001", help="the service's Execution API (%(default)s)")
    worker.add_argument("--capacity", type=int, default=os.cpu_count() or 1, help="runs at the same time (%(default)s)")
    worker.add_argument("--name", help="shown to people; the host's name by default")
    worker.add_argument("--grace-seconds", type=float, default=25, help="for runs after SIGTERM (%(default)s)")
    worker.add_argument("--log-format", choices=("text", "json"), default="text")
    describe = commands.add_parser("describe", help="print the workflows and their schemas as JSON")
    for each in (worker, describe):
        each.add_argument("sources", nargs="+", metavar="MODULE", help="a module, a file, or a directory of files")
    options = parser.parse_args()
    try:
        if options.command == "describe":
            process = AttemptProcess(options.sources)
            try:
                print(json.dumps(process.load(), indent=2, ensure_ascii=False))
            finally:
                process.kill()
            return 0
        handler = logging.StreamHandler()
        text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
        handler.setFormatter(_JsonFormatter() if options.log_format == "json" else text)
        logging.basicConfig(level=logging.INFO, handlers=[handler])
        if not 1 <= options.capacity <= 1000:
            parser.error("--capacity is 1 to 1000")
        # Out of the environment, so that workflows do not see the key.
        key = os.environ.pop("API_KEY", "")
        if not key:
            parser.error("API_KEY is not set: it must have an API key with the scope runs:execute")
        Worker(
            options.url,
            key,
            options.sources,
            capacity=options.capacity,
            name=options.name,
            grace_seconds=options.grace_seconds,
        ).run()
        return 0
    except ExecutionServiceError as error:
        print(f"execution_service: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
