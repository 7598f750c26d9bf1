"""Turn a verdict into points, by the rules of a course. Lateness is not a verdict's: lateness.py takes it off."""

from __future__ import annotations

from dataclasses import dataclass

from grader.classroom.course import Band, Points, Speed
from grader.verdict import Outcome, Reason, Stage, StageName, Status, Verdict

# Failures of a stage whose cases may all be right: the values are not the submission's own work, or were not reported
# truthfully.
NO_SHARE = {Reason.no_kernel, Reason.unneeded_kernel, Reason.torch_operator, Reason.false_report}
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
    """The points of one verdict. What is possible leaves out a stage that the verdict cannot answer for."""

    parts: tuple[Part, ...]

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
        elif name is StageName.fast:
            made += _score_speed(stage, possible, speed)
        elif stage.status is not Status.skipped:  # what a problem does not ask for is left out
            made.append(_score_stage(stage, possible, points.by_case))
    return Score(tuple(made))


def _score_stage(stage: Stage, possible: float, by_case: bool) -> Part:
    if stage.status is Status.passed:
        return Part(stage.name, possible, possible)
    why = stage.reason.value.replace("_", " ") if stage.reason else "failed"
    if not by_case or stage.name not in BY_CASE or stage.reason in NO_SHARE or not stage.cases:
        return Part(stage.name, 0.0, possible, why)
    right = sum(case.status is Status.passed for case in stage.cases)
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
