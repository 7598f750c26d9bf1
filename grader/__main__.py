"""`python -m grader` is the same as `grader`: no module comes from the current folder, where submissions may lie."""

import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
sys.path[:] = [ROOT, *(folder for folder in sys.path if folder and os.path.abspath(folder) not in (os.getcwd(), ROOT))]

from grader.cli.entry import main  # noqa: E402 - not before

main()
