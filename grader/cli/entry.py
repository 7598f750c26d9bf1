"""The entry point of `grader`, which imports little: Ctrl-C ends the command quietly while the rest is imported."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line and exit with its status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as in the background
        signal.signal(signal.SIGINT, end)
    from grader.cli.main import main

    main()


def end(_number: int, _frame: FrameType | None) -> None:
    """End the process, which has started nothing that would have to be ended, at once."""
    os.write(2, b"\nInterrupted.\n")
    os._exit(130)  # INTERRUPTED of grader.cli.statuses, which may not be imported yet
