"""`python -m grader` is the same as `grader`."""

from grader.cli.main import main

main()
