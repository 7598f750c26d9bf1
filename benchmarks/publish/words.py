"""Write tests/specimens/WORDS.md: what a student is shown of each specimen.

    python benchmarks/publish/words.py [NAME …] [--check] [--references]

It takes some minutes. With names it only prints those. --check writes nothing; the exit status is 1 if the committed
page differs. The head says how often the marked line is the wrong one: of the specimens by
tests/specimens/wrong_lines.toml, and of the reference solutions with one broken line by
tests/specimens/broken_references.toml; --references runs these alone.
"""

import argparse
import re
import sys
import tempfile
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import ROOT
from grader.diagnosis import fault_localization, hints, suspects
from grader.diagnosis.background import BackgroundDiagnosis
from grader.judging.grading import Limits, grade
from grader.paths import KERNELS_REF
from grader.problems import problem
from grader.reports import feedback
from grader.reports.terminal import clean
from grader.source.contract import Source
from grader.verdict import Reason, Status, Verdict

SPECIMENS = ROOT / "tests" / "specimens"
TABLE = SPECIMENS / "WORDS.md"
SEED = 20
HEAD = """# What a student is shown of each specimen

`python benchmarks/publish/words.py` made this: the text of a check's failed stages, as in a notebook or a terminal,
the alt texts of its pictures, and the first hint, which is only shown on request. → marks the line that the check
names.

Of {specimens} specimens that fail at a line, the marked lines are the wrong ones in {hits}{unmarked}. Of {references}
reference solutions with one broken line, the first line named is the broken one in {found}{misses}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 if the table is not what the specimens say"
    )
    parser.add_argument(
        "--references", action="store_true", help="only the reference solutions with one line broken; write nothing"
    )
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
    unnamed = sorted(set(wrong) - set(hits))
    unmarked = f" (not in {', '.join(unnamed)})" if unnamed else ""
    named = broken_references()
    missed = [name for name, hit in named.items() if not hit]
    misses = f" (not in {', '.join(missed)})" if missed else ""
    head = HEAD.format(
        specimens=len(wrong),
        hits=len(hits),
        unmarked=unmarked,
        references=len(named),
        found=len(named) - len(missed),
        misses=misses,
    )
    text = head + "\n" + "\n".join(entries)
    if options.check:
        sys.exit(TABLE.read_text(encoding="utf-8") != text)
    TABLE.write_text(text, encoding="utf-8")


def marked(words: str) -> list[str]:
    """Return the lines that an entry marks before any hint."""
    return re.findall(r"^→ *\d+ │ ?(.*)$", words.partition("First hint:")[0], re.MULTILINE)


def is_named(words: str, wrong: list[str]) -> bool:
    """Return whether lines are marked, and only wrong ones.

    wrong: a part of each wrong line; where something is missing, parts of the lines around it.
    """
    lines = marked(words)
    return bool(lines) and all(any(part in line for part in wrong) for line in lines)


def broken_references() -> dict[str, bool]:
    """Return for each reference with one broken line whether that line is the first one named."""
    found = {}
    for name, broken in tomllib.loads((SPECIMENS / "broken_references.toml").read_text(encoding="utf-8")).items():
        solution = (KERNELS_REF / name / "solution.py").read_text(encoding="utf-8")
        at = next(n for n, line in enumerate(solution.splitlines(), 1) if line.strip() == broken["line"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.py"
            path.write_text(solution.replace(broken["line"], broken["becomes"]), encoding="utf-8")
            first, last = first_named(path, name)
        found[name] = first <= at <= max(first, last)
        named = f"{first} to {last}" if last else str(first)
        print(f"{name}: broken is line {at}, named {named}: {'yes' if found[name] else 'no'}", flush=True)
    return found


def first_named(path: Path, name: str) -> tuple[int, int]:
    """Return the first line that is named, and the second for a place between two lines; 0 for none."""
    model, source = KERNELS_REF / name / "model.py", path.read_text(encoding="utf-8")
    verdict, found = checked(path, model, 30.0, AnyLine())
    if found is not None:
        return found.line, found.until
    failed = [stage for stage in verdict.stages if stage.status is Status.failed]
    lines = [stage.evidence[0].line for stage in reversed(failed) if stage.evidence and stage.evidence[0].line]
    if failed and not lines:
        place = feedback.place_of(failed[0], source)
        lines = list(place.lines) if place else suspects.of(failed[0], source)[1]
    return next(iter(lines), 0), 0


def entry(name: str, seconds: float) -> str:
    """Return one specimen's part of the page."""
    path = SPECIMENS / f"{name}.py"
    known = max((known for known in problem.names() if name.startswith(known)), key=len)
    verdict, found = checked(path, KERNELS_REF / known / "model.py", seconds)
    source = path.read_text(encoding="utf-8")
    first = source.splitlines()[0].strip('"# ') if source else "An empty file."
    return f"## {name}\n\n{first}\n\n```text\n{words(verdict, source, found)}\n```\n"


class AnyLine(BackgroundDiagnosis):
    """The fault localization that also searches lines that the exercise gives to students."""

    def case_failed(self, source: Source, exercise: str, reason: Reason, device: str) -> None:
        super().case_failed(source, "", reason, device)


def checked(
    path: Path, model: Path, seconds: float, diagnosis: BackgroundDiagnosis | None = None
) -> tuple[Verdict, fault_localization.Lead | None]:
    """Return the verdict, and the line that a mutant shows to be wrong, as grader.check finds them.

    diagnosis: used instead of a new BackgroundDiagnosis.
    """
    diagnosis = diagnosis or BackgroundDiagnosis()
    try:
        verdict = grade(path, problem=model, seed=SEED, limits=Limits(own=seconds), observer=diagnosis)
        return verdict, diagnosis.lead(verdict)
    finally:
        diagnosis.close()


def words(verdict: Verdict, source: str, found: fault_localization.Lead | None = None) -> str:
    """Return the text that is shown, without the table of stages if one failed; addresses are replaced by ‘…’."""
    from grader import pictures

    parts = feedback.verdict_parts(verdict, source, pictures.explain_verdict(verdict), lead=found)
    if any(stage.status in (Status.failed, Status.error) for stage in verdict.stages):
        parts = [parts[0], *parts[2:]]
    text = feedback.as_text(parts)
    text = re.sub(r"0x[0-9a-f]{9,}", "0x…", text)
    given = hints.of(verdict)
    return clean(text + (f"\n\nFirst hint: {given[0]}" if given else ""))


if __name__ == "__main__":
    main()
