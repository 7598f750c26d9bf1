"""Count the hand-written lines of kernels_ref, now and at a commit: generated fastest files do not count now.

python benchmarks/lines.py [COMMIT]     COMMIT is the one before the fastest files were generated: 488ac8d
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "488ac8d"
KINDS = {
    "generated": r"/fastest\w*\.py$",
    "fastest, by hand": r"/fastest/|^kernels_ref/shared/|/limit\w*\.py$",
    "models": r"/model\.py$",
    "solutions and backward": r"/(solution|backward|split)\.py$",
    "steps": r"/steps/",
    "hints and the rest": "",
}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def count(texts: dict[str, str]) -> dict[str, int]:
    """Return the lines of each of KINDS."""
    lines = dict.fromkeys(KINDS, 0)
    for name, text in texts.items():
        lines[next(kind for kind, pattern in KINDS.items() if re.search(pattern, name))] += len(text.splitlines())
    return lines


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    names = git("ls-tree", "-r", "--name-only", commit, "kernels_ref").split()
    before = count({name: git("show", f"{commit}:{name}") for name in names})
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "kernels_ref").split()
    files = [name for name in listed if (ROOT / name).is_file()]
    now = count({name: (ROOT / name).read_text(encoding="utf-8") for name in files})
    for kind in KINDS:
        print(f"{kind:24}{before[kind]:8,}{now[kind]:8,}")
    hand = [sum(n for kind, n in lines.items() if kind != "generated") for lines in (before, now)]
    print(f"{'by hand':24}{hand[0]:8,}{hand[1]:8,}  {hand[1] / hand[0] - 1:+.1%}")


if __name__ == "__main__":
    main()
