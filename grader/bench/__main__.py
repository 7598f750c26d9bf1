"""Run a child process: python -m grader.bench FD ORDER. It writes its lines to the file descriptor FD."""

import json
import os
import sys

from grader.bench.child import run_task
from grader.bench.order import Order


def main() -> None:
    descriptor, order = int(sys.argv[1]), Order(**json.loads(sys.argv[2]))
    with os.fdopen(descriptor, "w", closefd=False) as out:

        def report(line: dict) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        run_task(order, report)


if __name__ == "__main__":
    main()
