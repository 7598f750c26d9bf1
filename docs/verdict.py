"""Draw docs/verdict.svg, the README's picture: what `grader grade` prints of a kernel with a missing barrier.

    python docs/verdict.py

It grades tests/specimens/groupnorm_missing_barrier.py on the CPU, which takes a few seconds.
"""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from grader.judging.grading import grade
from grader.reports import terminal

ROOT = Path(__file__).resolve().parent.parent
SPECIMEN = Path("tests/specimens/groupnorm_missing_barrier.py")
COLUMNS = 110
SEED = 20


def main() -> None:
    verdict = grade(ROOT / SPECIMEN, problem=ROOT / "kernels_ref/groupnorm/model.py", device="cpu", seed=SEED)
    verdict.submission.path = SPECIMEN.name
    verdict.seconds = round(verdict.seconds)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    terminal.show(console, verdict)
    svg = console.export_svg(title="grader grade groupnorm_missing_barrier.py", theme=MONOKAI, unique_id="verdict")
    svg = re.sub(
        r" *(<!--.*?-->|@font-face \{.*?\})\n", "", svg, flags=re.DOTALL
    )  # fonts come from the reader's machine
    (ROOT / "docs" / "verdict.svg").write_text(svg + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
