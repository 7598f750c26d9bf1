"""How a stage's result is written: failed with a finding, ended with an error, or skipped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from grader.judging.trial import Finding
from grader.verdict import NOT_OWN_WORK, CaseResult, Evidence, Reason, Stage, Status

if TYPE_CHECKING:  # it imports torch, which is loaded while the worker starts
    from grader.problems.cases import Case

ERRORS = {Reason.no_compiler, Reason.grader_error}  # faults of the machine or of the grader, not of the submission
LEAST_COMPARED = 2  # right cases, and wrong ones, of which something is said in common
MAX_MESSAGE = 40_000  # characters: twice those of a worker's text, for what the judge adds to it
# Reasons that are about numbers: the stage "safe" may explain them.
VALUE_REASONS = {
    *(Reason.wrong_values, Reason.non_finite, Reason.not_written, Reason.low_precision, Reason.constant_output),
}


def end_stage(stage: Stage, status: Status, reason: Reason, message: str, evidence: list[Evidence]) -> None:
    """Write status, reason and message, of a length that every reader can bear; add the evidence."""
    stage.status, stage.reason, stage.message = status, reason, message[:MAX_MESSAGE]
    stage.evidence = [*stage.evidence, *evidence]


def fail_stage(stage: Stage, finding: Finding) -> None:
    """End the stage with this finding: as an error where the submission is not at fault."""
    status = Status.error if finding.reason in ERRORS else Status.failed
    end_stage(stage, status, finding.reason, finding.message, finding.evidence)


def skip_stage(stage: Stage, reason: Reason | None, message: str) -> None:
    """Leave the stage out, which is no failure."""
    stage.status, stage.reason, stage.message = Status.skipped, reason, message


def is_own_work_missing(stage: Stage) -> bool:
    """Return whether the stage failed because the submission's own kernels did not compute what is right."""
    return stage.status is Status.failed and stage.reason in NOT_OWN_WORK


def add_case(stage: Stage, name: str, finding: Finding | None) -> None:
    """Add a case that was run: failed with the finding, or passed."""
    status, reason = (Status.failed, finding.reason) if finding else (Status.passed, None)
    stage.cases.append(CaseResult(name=name, status=status, reason=reason))


def describe_common(stage: Stage, cases: Sequence[Case], literals: Mapping[str, object]) -> str:
    """Return a sentence on the one setting that all wrong cases of a stage have and no right one has; else "".

    literals: the values of the problem's file, for cases that do not set them.
    """
    went = {case.name: case.status for case in stage.cases}
    values = {case.name: {**literals, **case.set} for case in cases if case.name in went}
    wrong = [one for name, one in values.items() if went[name] is Status.failed]
    right = [one for name, one in values.items() if went[name] is Status.passed]
    if len(wrong) < LEAST_COMPARED or len(right) < LEAST_COMPARED:
        return ""
    first = wrong[0]
    common = [
        key
        for key in sorted({key for case in cases for key in case.set})
        if key in first
        and all(one.get(key) == first[key] for one in wrong)
        and not any(one.get(key) == first[key] for one in right)
    ]
    return f" All cases with `{common[0]} = {first[common[0]]}` fail, and no others." if len(common) == 1 else ""


def add_skipped_case(stage: Stage, name: str, reason: Reason | None = None) -> None:
    """Add a case that was not run."""
    stage.cases.append(CaseResult(name=name, status=Status.skipped, reason=reason))


@contextlib.contextmanager
def keep_when_interrupted(stage: Stage, found: list[Finding]) -> Iterator[None]:
    """Write what was found into the stage if the keyboard interrupts it in the with-block."""
    try:
        yield
    except KeyboardInterrupt:
        if found:
            clearest = pick_clearest(found)
            stage.message, stage.evidence = clearest.message, [*stage.evidence, *clearest.evidence]
        raise


def pick_clearest(found: list[Finding]) -> Finding:
    """Return the first finding, or where it has no telling pattern a later one of the same reason that has.

    That all values are the same is only telling where they are so in every case: few small numbers may be by chance.
    """
    varied = [f for f in found if f.reason in VALUE_REASONS and f.reason is not Reason.constant_output]
    found = varied if found[0].reason is Reason.constant_output and varied else found
    patterned = [f for f in found if f.reason is found[0].reason and f.evidence[0].pattern not in (None, "everything")]
    return patterned[0] if patterned else found[0]
