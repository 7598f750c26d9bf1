"""What linting a problem found, as data."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from grader.lint.attempt import DECOY, MUTANT, Label
from grader.lint.menu import Suggestion

SCHEMA = "kernel-course/lint/1"
KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"


@dataclasses.dataclass
class Outcome:
    """What became of a decoy or mutant.

    ran_in: names of the cases in which it gave outputs or raised. killed_by: names of the cases that reject it.
    has_effect: whether it changes the result anywhere, in float64. suggestion: a case that rejects it.
    """

    label: Label
    ran_in: list[str] = dataclasses.field(default_factory=list)
    killed_by: list[str] = dataclasses.field(default_factory=list)
    has_effect: bool = False
    suggestion: Suggestion | None = None

    @property
    def status(self) -> str:
        """Return KILLED, SURVIVED, or EQUIVALENT, which is not counted."""
        if self.killed_by:
            return KILLED
        return SURVIVED if self.has_effect else EQUIVALENT


@dataclasses.dataclass
class LintResult:
    """All outcomes of one problem.

    cases: names. raising: number of mutants that raise in each case, which are in no outcome. listed: number of mutants
    that the file has, of which some may not have been run.
    """

    problem: str
    path: str
    sha256: str
    settings: dict[str, object]
    device: str
    seed: int
    cases: list[str]
    outcomes: list[Outcome]
    raising: int = 0
    listed: int = 0

    def of_kind(self, kind: str, status: str | None = None) -> list[Outcome]:
        """Return the outcomes of decoys or mutants, of one status or all."""
        return [one for one in self.outcomes if one.label.kind == kind and status in (None, one.status)]

    @property
    def survivors(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.status == SURVIVED]

    def rate(self, kind: str) -> tuple[int, int]:
        """Return how many decoys or mutants were killed, and how many were counted."""
        killed = len(self.of_kind(kind, KILLED))
        return killed, killed + len(self.of_kind(kind, SURVIVED))

    def groups(self) -> dict[tuple[str, str], list[Outcome]]:
        """Return the outcomes by kind and group, in order."""
        found: dict[tuple[str, str], list[Outcome]] = {}
        for one in self.outcomes:
            found.setdefault((one.label.kind, one.label.group), []).append(one)
        return found

    def count_by_case(self) -> dict[str, dict[str, int]]:
        """Return for each case how many decoys and mutants it kills, and how many it alone kills."""
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.cases}
        for one in self.outcomes:
            for name in one.killed_by:
                counts[name][one.label.kind] += 1
                counts[name]["alone"] += len(one.killed_by) == 1
        return {name: {key: count[key] for key in (DECOY, MUTANT, "alone")} for name, count in counts.items()}

    def to_data(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        rates = {}
        for kind in (DECOY, MUTANT):
            killed, counted = self.rate(kind)
            equivalent = len(self.of_kind(kind, EQUIVALENT))
            rates[kind + "s"] = {"killed": killed, "counted": counted, "equivalent": equivalent}
        rates["mutants"] |= {"raising": self.raising, "listed": self.listed}
        return {
            "schema": SCHEMA,
            "problem": self.problem,
            "path": self.path,
            "sha256": self.sha256,
            "settings": self.settings,
            "device": self.device,
            "seed": self.seed,
            **rates,
            "cases": [{"name": name, **count} for name, count in self.count_by_case().items()],
            "outcomes": [_describe(one) for one in self.outcomes],
        }


def _describe(outcome: Outcome) -> dict[str, object]:
    label = {key: value for key, value in dataclasses.asdict(outcome.label).items() if value not in (None, "")}
    data: dict[str, object] = {**label, "status": outcome.status, "killed_by": outcome.killed_by}
    if outcome.suggestion:
        data["suggestion"] = dataclasses.asdict(outcome.suggestion)
    return data
