"""Writes tests/specimens/WORDS.md: for each specimen what a student is shown. `python benchmarks/words.py [NAME ...]`; takes some minutes.

With names only those are shown, on the terminal. Exit status 1 where the committed table says something else (--check). The head says how often
the marked line is the wrong one: of the specimens by tests/specimens/wrong_lines.toml, and of the reference solutions with one line broken
(tests/specimens/broken_references.toml); --references runs these alone.
"""

import argparse
import re
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grader import hints, problem, repair, shown, suspects  # noqa: E402
from grader.beside import Beside  # noqa: E402
from grader.contract import Source  # noqa: E402
from grader.judge import Limits, grade  # noqa: E402
from grader.report import clean  # noqa: E402
from grader.verdict import Status, Verdict  # noqa: E402

SPECIMENS = ROOT / "tests" / "specimens"
TABLE = SPECIMENS / "WORDS.md"
SEED = 20
HEAD = """# What a student is shown of each specimen

Made by `python benchmarks/words.py`: the words of a check's failed stages, as in a notebook or a terminal, the alt texts of its pictures, and
the first hint, which is only shown when it is asked for. → marks the line that is said to be wrong.

Of {specimens} specimens that fail at a line, the marked lines are the wrong ones in {hits}. Of {references} reference solutions with one line broken,
the first line named is the broken one in {found}{misses}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the table is not what the specimens say")
    parser.add_argument("--references", action="store_true", help="only the reference solutions with one line broken; write nothing")
    options = parser.parse_args()
    if options.references:
        broken_references()
        return
    expected = tomllib.loads((SPECIMENS / "expected.toml").read_text(encoding="utf-8"))
    names = options.names or sorted(expected)
    entries = []
    for name in names:
        entries.append(entry(name, expected[name].get("seconds", 30.0)))
        print(entries[-1], flush=True)
    if options.names:
        return
    wrong = tomllib.loads((SPECIMENS / "wrong_lines.toml").read_text(encoding="utf-8"))
    hits = [name for name, part in zip(names, entries) if name in wrong and is_named(part, wrong[name])]
    print("not named:", sorted(set(wrong) - set(hits)))
    named = broken_references()
    missed = [name for name, hit in named.items() if not hit]
    misses = f" (not in {', '.join(missed)})" if missed else ""
    head = HEAD.format(specimens=len(wrong), hits=len(hits), references=len(named), found=len(named) - len(missed), misses=misses)
    text = head + "\n" + "\n".join(entries)
    if options.check:
        sys.exit(TABLE.read_text(encoding="utf-8") != text)
    TABLE.write_text(text, encoding="utf-8")


def marked(words: str) -> list[str]:
    """The lines that an entry marks before any hint."""
    return re.findall(r"^→ *\d+ │ ?(.*)$", words.partition("First hint:")[0], re.MULTILINE)


def is_named(words: str, wrong: list[str]) -> bool:
    """Whether lines are marked, and none but wrong ones. wrong: a part of each; of what is missing, the lines around it."""
    lines = marked(words)
    return bool(lines) and all(any(part in line for part in wrong) for line in lines)


def broken_references() -> dict[str, bool]:
    """For each reference with one line broken, whether that line is the first one named."""
    found = {}
    for name, broken in tomllib.loads((SPECIMENS / "broken_references.toml").read_text(encoding="utf-8")).items():
        solution = (problem.KERNELS_REF / name / "solution.py").read_text(encoding="utf-8")
        at = next(n for n, line in enumerate(solution.splitlines(), 1) if line.strip() == broken["line"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.py"
            path.write_text(solution.replace(broken["line"], broken["becomes"]), encoding="utf-8")
            first, last = first_named(path, name)
        found[name] = first <= at <= max(first, last)
        print(f"{name}: broken is line {at}, named {first}{f' to {last}' if last else ''}: {'yes' if found[name] else 'no'}", flush=True)
    return found


def first_named(path: Path, name: str) -> tuple[int, int]:
    """The first line that is named, and the second of a place between two; 0 for none."""
    model, source = problem.KERNELS_REF / name / "model.py", path.read_text(encoding="utf-8")
    verdict, found = checked(path, model, 30.0, AnyLine())
    if found is not None:
        return found.line, found.until
    failed = [stage for stage in verdict.stages if stage.status is Status.failed]
    lines = [stage.evidence[0].line for stage in reversed(failed) if stage.evidence and stage.evidence[0].line]
    if failed and not lines:
        place = shown.place_of(failed[0], source)
        lines = list(place.lines) if place else suspects.of(failed[0], source)[1]
    return next(iter(lines), 0), 0


def entry(name: str, seconds: float) -> str:
    """One specimen's part of the table."""
    path = SPECIMENS / f"{name}.py"
    known = max((known for known in problem.names() if name.startswith(known)), key=len)
    verdict, found = checked(path, problem.KERNELS_REF / known / "model.py", seconds)
    source = path.read_text(encoding="utf-8")
    first = source.splitlines()[0].strip('"# ') if source else "An empty file."
    return f"## {name}\n\n{first}\n\n```text\n{words(verdict, source, found)}\n```\n"


class AnyLine(Beside):
    """The search where each line may be the broken one, also one that a student is given with the exercise."""

    def wrong(self, source: Source, exercise: str = "") -> None:
        super().wrong(source)


def checked(path: Path, model: Path, seconds: float, beside: Beside | None = None) -> tuple[Verdict, repair.Lead | None]:
    """The verdict, and the line that an edit shows to be wrong: as grader.check finds them. beside: another search than that."""
    beside = beside or Beside()
    try:
        verdict = grade(path, problem=model, seed=SEED, limits=Limits(own=seconds), beside=beside)
        return verdict, beside.lead(verdict)
    finally:
        beside.close()


def words(verdict: Verdict, source: str, found: repair.Lead | None = None) -> str:
    """What is shown, without the table of stages where a stage failed; numbers that a crash leaves to chance as ‘…’."""
    from grader import pictures

    parts = shown.verdict_parts(verdict, source, pictures.of(verdict), lead=found)
    if any(stage.status in (Status.failed, Status.error) for stage in verdict.stages):
        parts = [parts[0], *parts[2:]]
    text = shown.as_text(parts)
    text = re.sub(r"0x[0-9a-f]{9,}", "0x…", text)
    given = hints.of(verdict)
    return clean(text + (f"\n\nFirst hint: {given[0]}" if given else ""))


if __name__ == "__main__":
    main()
