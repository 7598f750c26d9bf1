"""The child's process: python -m grader.bench FD ORDER. Its lines go to the file descriptor FD."""

import json
import os
import sys

from grader.bench.child import Order, child


def main() -> None:
    descriptor, order = int(sys.argv[1]), Order(**json.loads(sys.argv[2]))
    with os.fdopen(descriptor, "w", closefd=False) as out:

        def say(line: dict) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        child(order, say)


if __name__ == "__main__":
    main()
