"""A class with made verdicts: real ones of the specimens, shared out among as many students as are asked for.

`python -m tests.grader.classroom.made_class FOLDER [STUDENTS]` writes one, for `grader class pages` to be tried on.
"""

import csv
import datetime
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from grader.classroom.collect import Attempt, Collected, Remark, State
from grader.classroom.course import read_course
from grader.classroom.gradings import Verdicts, make_gradings
from grader.classroom.journal import Journal
from grader.classroom.roster import FILE
from grader.paths import ROOT
from grader.verdict import (
    Evidence,
    Measurement,
    Outcome,
    Reason,
    StageName,
    Status,
    Verdict,
    from_json,
    to_json,
)

PROBLEMS = ["conv2d", "im2col_conv", "groupnorm", "bias_scale_sigmoid", "logsumexp"]
# Verdicts as `grader grade --json` wrote them for these files, on a machine without a GPU.
VERDICTS = Path(__file__).with_name("made_verdicts.jsonl")
DUE = datetime.datetime(2026, 11, 2, 18, tzinfo=datetime.UTC)
WEEK = datetime.timedelta(weeks=1)
RULES = """title = "GPU kernels, autumn 2026"
timezone = "Europe/Zurich"
[late]
free_days = 1
[speed]
unmeasured = "left_out"
"""
FIRST = "Ada Bilal Chiara Dmitri Élodie Fatima Goran Hana Ines Jun Kofi Lea Mateo Noor Olga Pavel Qi Rosa Sven Tala Uma"
LAST = (
    "Abel Bauer Costa Dubois Egger Fischer Garcia Huber Ito Jansen Keller Lopez Meier Novak Okafor Peter Rossi Schmid"
)


def write_class(folder: Path, students: int, gpu: bool = True, seed: int = 1) -> None:
    """Write a course's folder with its database. gpu: whether what passed has measured speeds."""
    draw = random.Random(seed)
    names = [draw.choice(FIRST.split()) + " " + draw.choice(LAST.split()) for _ in range(students)]
    people = {f"s{at:04}": name for at, name in enumerate(names, 1)}
    write_rules(folder, people)
    known = read_verdicts()
    collected, given = Collected(), {}
    for key, name in people.items():
        for at, problem in enumerate(PROBLEMS):
            for attempt, verdict in _hand_in(draw, key, name, at, problem, known[problem], gpu):
                collected.attempts.append(attempt)
                given[attempt.sha256, problem] = verdict
            if draw.random() < 0.02:
                why = f"{problem}.ipynb is a notebook. Put the code of its ModelNew into a .py file."
                collected.remarks.append(Remark(key, problem, f"{key}/{problem}.ipynb", State.unreadable, why))
    keep(folder, collected, given)


def write_rules(folder: Path, people: dict[str, str], leaderboard: str = "pseudonyms") -> None:
    """Write course.toml, and roster.csv with the names of these students by their ids. leaderboard: of groupnorm."""
    folder.mkdir(parents=True, exist_ok=True)
    rules = RULES + "".join(
        f"[problems.{name}]\ndue = {(DUE + at * WEEK).isoformat()}\n"
        + (f'leaderboard = "{leaderboard}"\n' if name == "groupnorm" else "")
        for at, name in enumerate(PROBLEMS)
    )
    (folder / "course.toml").write_text(rules, encoding="utf-8")
    with open(folder / FILE, "w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([("id", "name"), *people.items()])


def keep(folder: Path, collected: Collected, given: dict[tuple[str, str], Verdict | None]) -> None:
    """Keep what was collected, and the verdicts on it by digest and problem; None is left without one."""
    course = read_course(folder)
    with Journal(folder) as journal:
        journal.connection.execute("PRAGMA synchronous = OFF")  # thousands of changes, and nothing to lose
        journal.add(collected, "made")
        verdicts = Verdicts(journal)
        for one in make_gradings(journal.attempts(), course, folder, verdicts.read_secret()).values():
            if verdict := given.get((one.sha256, one.problem)):
                verdicts.add(one.key, verdict)


def read_verdicts() -> dict[str, list[tuple[str, Verdict]]]:
    """Return for each problem the texts of files with their verdicts, one that passed first."""
    found: dict[str, list[tuple[str, Verdict]]] = {}
    for line in VERDICTS.read_bytes().splitlines():
        verdict = from_json(line)
        file = ROOT / verdict.submission.path
        found.setdefault(verdict.problem, []).append((file.read_text(encoding="utf-8"), verdict))
    passed = next(verdict for each in found.values() for _, verdict in each if verdict.outcome is Outcome.passed)
    for name in PROBLEMS:
        copied = from_json(to_json(passed))
        copied.problem = name
        found[name].insert(0, ((ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8"), copied))
    return found


def _hand_in(
    draw: random.Random, key: str, name: str, at: int, problem: str, known: list[tuple[str, Verdict]], gpu: bool
) -> Iterator[tuple[Attempt, Verdict | None]]:
    """Yield the attempts of a student on a problem: wrong ones, then perhaps a right one; or none."""
    if draw.random() < 0.04 + 0.03 * at:
        return
    skill = draw.betavariate(4, 2) - 0.06 * at
    tries = draw.choice([1, 1, 2, 3])
    for number in range(tries):
        right = number == tries - 1 and draw.random() < skill
        text, verdict = known[0] if right else draw.choice(known[1:])
        made = from_json(to_json(verdict))
        pace, made.seed = draw.lognormvariate(0, 0.4), draw.getrandbits(40)
        made.seconds *= pace
        for stage in made.stages:
            stage.seconds *= pace
        if right and gpu:
            measure(made, draw.lognormvariate(-0.1, 0.35))
        late = draw.random() < 0.12 and number == tries - 1
        hours = draw.uniform(1, 60) if late else -draw.uniform(1, 72) + number / 4
        data = f"{text}\n# {name}, attempt {number + 1}\n".encode()
        when = DUE + at * WEEK + datetime.timedelta(hours=hours)
        attempt = Attempt(key, problem, f"{key}/{problem}.py", data, when)
        yield attempt, None if draw.random() < 0.01 else made


def measure(verdict: Verdict, speed: float) -> None:
    """Give a verdict times as the stage "fast" measures them on a GPU."""
    stage = verdict.stage(StageName.fast)
    stage.status, stage.reason, stage.message = Status.passed, None, ""
    times = {"this submission": 0.412, "eager": 0.9 * speed, "reference solution": 0.412 * speed}
    stage.measurements = [Measurement(name=name, value=value, unit="ms", samples=60) for name, value in times.items()]
    for name in ("eager", "reference solution"):
        ratio = times[name] / times["this submission"]
        stage.measurements.append(Measurement(name=f"speed-up over {name}", value=ratio, unit="x"))


def fail(verdict: Verdict, message: str, output: str, line: int) -> None:
    """Make a verdict one on a submission that raised an exception, whose words and output it chose."""
    stage = verdict.stage(StageName.correct)
    verdict.outcome, verdict.output = Outcome.failed, output
    stage.status, stage.reason, stage.message = Status.failed, Reason.exception, message
    stage.evidence = [Evidence(line=line, text=message, detail=message)]


if __name__ == "__main__":
    write_class(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300)
