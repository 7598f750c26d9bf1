"""Writes tests/specimens/WORDS.md: for each specimen what a student is shown. `python benchmarks/words.py [NAME ...]`; takes some minutes.

With names only those are shown, on the terminal. Exit status 1 where the committed table says something else (--check).
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grader import hints, problem, shown  # noqa: E402
from grader.judge import Limits, grade  # noqa: E402
from grader.report import clean  # noqa: E402
from grader.verdict import Status, Verdict  # noqa: E402

SPECIMENS = ROOT / "tests" / "specimens"
TABLE = SPECIMENS / "WORDS.md"
SEED = 20
HEAD = """# What a student is shown of each specimen

Made by `python benchmarks/words.py`: the words of a check's failed stages, as in a notebook or a terminal, the alt texts of its pictures, and
the first hint. → marks the line that is said to be wrong.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the table is not what the specimens say")
    options = parser.parse_args()
    expected = tomllib.loads((SPECIMENS / "expected.toml").read_text(encoding="utf-8"))
    names = options.names or sorted(expected)
    entries = []
    for name in names:
        entries.append(entry(name, expected[name].get("seconds", 30.0)))
        print(entries[-1], flush=True)
    text = HEAD + "\n" + "\n".join(entries)
    if options.check:
        sys.exit(TABLE.read_text(encoding="utf-8") != text)
    if not options.names:
        TABLE.write_text(text, encoding="utf-8")


def entry(name: str, seconds: float) -> str:
    """One specimen's part of the table."""
    path = SPECIMENS / f"{name}.py"
    known = max((known for known in problem.names() if name.startswith(known)), key=len)
    verdict = grade(path, problem=problem.KERNELS_REF / known / "model.py", seed=SEED, limits=Limits(own=seconds))
    source = path.read_text(encoding="utf-8")
    first = source.splitlines()[0].strip('"# ') if source else "An empty file."
    return f"## {name}\n\n{first}\n\n```text\n{words(verdict, source)}\n```\n"


def words(verdict: Verdict, source: str) -> str:
    """What is shown, without the table of stages where a stage failed; numbers that a crash leaves to chance as ‘…’."""
    from grader import pictures

    parts = shown.verdict_parts(verdict, source, pictures.of(verdict))
    if any(stage.status in (Status.failed, Status.error) for stage in verdict.stages):
        parts = [parts[0], *parts[2:]]
    text = shown.as_text(parts)
    text = re.sub(r"0x[0-9a-f]{9,}", "0x…", text)
    given = hints.of(verdict)
    return clean(text + (f"\n\nFirst hint: {given[0]}" if given else ""))


if __name__ == "__main__":
    main()
