"""Turn a verdict into points, by the rules of a course. Lateness is not a verdict's: lateness.py takes it off."""

from __future__ import annotations

from dataclasses import dataclass

from grader.classroom.course import Band, Points, Speed
from grader.verdict import NOT_OWN_WORK, Outcome, Reason, Stage, StageName, Status, Verdict

NOT_OWN = "No stage earns points, because the submission's own kernels do not compute the results."
BY_CASE = (StageName.correct, StageName.gradient)
BASELINES = {"reference": "speed-up over reference solution", "eager": "speed-up over eager"}


@dataclass(frozen=True)
class Part:
    """The points of one stage. why: what they follow from, in words; empty if the stage passed."""

    stage: StageName
    earned: float
    possible: float
    why: str = ""


@dataclass(frozen=True)
class Score:
    """The points of one verdict. What is possible leaves out a stage that the verdict cannot answer for.

    note: a sentence on all stages together; mostly empty.
    """

    parts: tuple[Part, ...]
    note: str = ""

    @property
    def earned(self) -> float:
        """Return the points earned."""
        return sum(part.earned for part in self.parts)

    @property
    def possible(self) -> float:
        """Return the points that could be earned."""
        return sum(part.possible for part in self.parts)

    @property
    def share(self) -> float:
        """Return what was earned of what was possible, from 0 to 1."""
        return self.earned / self.possible if self.possible else 0.0


def score(verdict: Verdict, points: Points, speed: Speed) -> Score | None:
    """Return the points of a verdict; None if it says nothing about the submission, because the grader failed."""
    if verdict.outcome is Outcome.error:
        return None
    stages = {stage.name: stage for stage in verdict.stages}
    made = []
    for name, possible in points.by_stage().items():
        stage = stages.get(name)
        if not possible:
            continue
        if verdict.outcome is Outcome.not_attempted or stage is None or stage.reason is Reason.not_reached:
            made.append(Part(name, 0.0, possible, "not reached"))
        elif why := _find_void(verdict, stage):
            made.append(Part(name, 0.0, possible, why))
        elif name is StageName.fast:
            made += _score_speed(stage, possible, speed)
        elif stage.status is not Status.skipped:  # what a problem does not ask for is left out
            made.append(_score_stage(stage, possible, points.by_case))
    return Score(tuple(made), NOT_OWN if verdict.not_own else "")


def _find_void(verdict: Verdict, stage: Stage) -> str:
    """Return why a stage earns nothing whatever its own result is; empty if it may earn points.

    Points are for what the submission's own kernels did.
    """
    if verdict.not_own:
        return f"{_write(verdict.not_own)}: no stage counts"
    if stage.status is Status.passed and stage.reason in NOT_OWN_WORK and verdict.outcome is not Outcome.passed:
        return _write(stage.reason)  # "build", in which no kernel was built
    if stage.name is StageName.build:
        return ""
    correct = verdict.stage(StageName.correct)
    if correct.status is Status.passed and correct.reason is Reason.inconclusive:
        return "it is not known what computed the results"
    unknown = stage.name is StageName.gradient and stage.status is Status.passed and stage.reason is Reason.inconclusive
    return "it is not known what computed the gradients" if unknown else ""


def _write(reason: Reason | None) -> str:
    return reason.value.replace("_", " ") if reason else "failed"


def _count_right(stage: Stage) -> int:
    """Return how many cases are right; none of a failed stage in which no case failed: the cases do not say why."""
    if not any(case.status is Status.failed for case in stage.cases):
        return 0
    return sum(case.status is Status.passed for case in stage.cases)


def _score_stage(stage: Stage, possible: float, by_case: bool) -> Part:
    if stage.status is Status.passed:
        return Part(stage.name, possible, possible)
    why = _write(stage.reason)
    if not by_case or stage.name not in BY_CASE or stage.reason in NOT_OWN_WORK or not stage.cases:
        return Part(stage.name, 0.0, possible, why)
    right = _count_right(stage)
    return Part(
        stage.name, possible * right / len(stage.cases), possible, f"{why}: {right} of {len(stage.cases)} cases"
    )


def _score_speed(stage: Stage, possible: float, speed: Speed) -> list[Part]:
    """Return the points of "fast": none in the list if they are left out."""
    if stage.status is Status.failed:
        return [_score_stage(stage, possible, by_case=False)]
    measured = {one.name: one.value for one in stage.measurements if stage.reason is not Reason.inconclusive}
    shares = [
        (_find_share(bands, measured[name]), f"{measured[name]:.2f} times {key}")
        for key, name in BASELINES.items()
        if (bands := getattr(speed, key)) and name in measured
    ]
    if shares:
        share, why = max(shares)
        return [Part(stage.name, possible * share, possible, why)]
    if speed.unmeasured == "left_out":
        return []
    share = 1.0 if speed.unmeasured == "full" else 0.0
    return [Part(stage.name, possible * share, possible, "speed was not measured")]


def _find_share(bands: list[Band], speed_up: float) -> float:
    """Return the share of the last band that the speed-up reaches; 0 below the first."""
    return max((band.share for band in bands if band.from_ <= speed_up), default=0.0)
