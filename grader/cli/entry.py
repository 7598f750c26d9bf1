"""The entry point of `grader`, which imports little: Ctrl-C ends the command quietly while the rest is imported."""

import signal

from grader.cli.statuses import end_interrupted


def main() -> None:
    """Run the command line and exit with its status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as in the background
        signal.signal(signal.SIGINT, end_interrupted)
    from grader.cli.main import main

    main()
