"""Read what is expected of each dishonest submission, and compare it with what became of one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from grader.verdict import Outcome, Verdict
from grader.worker.levels import Level

ROOT = Path(__file__).resolve().parents[2]
SPECIMENS = ROOT / "tests" / "specimens" / "dishonest"
TABLE = SPECIMENS / "expected.toml"
# The names of the classes, and what the files of each try.
CLASSES = {
    "view": "read what the sandbox hides, or reach something outside it",
    "judge": "harm the judge by what the worker leaves or sends",
    "reason": "choose the verdict's reason, or keep the judge busy",
    "facts": "lie about facts that the worker reports",
    "time": "look faster than they are",
    "kernels": "pass without a kernel of their own",
    "left": "leave something behind",
    "open": "run without a sandbox, or in the judge itself",
}
OWN_SECONDS = 40.0  # for the submission's own code; a loaded machine needs some of it to start


class Specimen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"group": "class"}):
    """A row of expected.toml; the head of that file explains the fields."""

    name: str
    group: str
    problem: str = "logsumexp"
    device: str = "cpu"
    outcome: str = "failed"
    stage: str = "build"
    reason: str = "import_error"
    says: str = ""
    refused: str = ""
    handed_in_as: str = ""
    kind: str = "file"
    beside: tuple[str, ...] = ()
    plants: tuple[str, ...] = ()
    levels: tuple[str, ...] = tuple(map(str, Level))
    succeeds_at: tuple[str, ...] = ()
    seconds: float = OWN_SECONDS
    names_problem: bool = True
    tells: bool = False

    @property
    def file(self) -> Path:
        """Return the specimen's file."""
        return SPECIMENS / f"{self.name}.py"

    @property
    def promised(self) -> str:
        """Return the words of the promised verdict."""
        if self.refused or self.outcome == Outcome.passed:
            return "refused" if self.refused else "passed"
        return f"{self.outcome} {self.stage} {self.reason}"


def read_specimens(device: str = "cpu") -> list[Specimen]:
    """Return the rows of expected.toml for this device."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    made = [msgspec.convert(row | {"name": name}, Specimen) for name, row in rows.items()]
    return [one for one in made if one.device == device]


@dataclass
class Attempt:
    """What became of one batch.

    verdict: on the dishonest file, None if it was not graded. harms: what it achieved, in words. status: the command's
    exit status, None if it had to be stopped.
    """

    specimen: Specimen
    level: Level
    verdict: Verdict | None = None
    harms: list[str] = field(default_factory=list)
    status: int | None = None
    printed: str = ""
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """Return the verdict's outcome, stage and reason."""
        if self.verdict is None or (self.specimen.refused and self.verdict.outcome is Outcome.error):
            return "refused" if self.status not in (0, 1, None) else "no verdict"
        if self.verdict.outcome is Outcome.passed:
            return "passed"
        stage = self.verdict.first_problem
        return f"{self.verdict.outcome} {stage.name} {stage.reason}"

    def find_mistake(self) -> str:
        """Return how the result differs from what expected.toml promises for this level; empty if it does not."""
        message = (
            "" if self.verdict is None or self.verdict.first_problem is None else self.verdict.first_problem.message
        )
        wanted = self.specimen
        if mistake := find_mistake(wanted, self.level, self.words, self.harms):
            return f"{mistake}: {message or self.printed[-500:]}"
        if self.level in wanted.succeeds_at or (wanted.says in message and wanted.refused in self.printed):
            return ""
        return f"{wanted.says or wanted.refused!r} is not said: {message or self.printed[-500:]}"


def find_mistake(specimen: Specimen, level: str, words: str, harms: list[str]) -> str:
    """Return how a result differs from what is promised; empty if it does not. words: of the verdict."""
    if level in specimen.succeeds_at:
        return "" if harms else f"it achieves nothing at level {level}, is the attack real?"
    return "; ".join(harms) or ("" if words == specimen.promised else f"expected {specimen.promised}, got {words}")
