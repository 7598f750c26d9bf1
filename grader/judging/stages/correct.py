"""The stage "correct": run every case twice and compare the outputs with the expected ones."""

from __future__ import annotations

import dataclasses

from grader.judging import checked_runs, findings, kernel_use
from grader.judging.context import Context
from grader.judging.results import (
    add_case,
    add_skipped_case,
    describe_common,
    fail_stage,
    keep_when_interrupted,
    pick_clearest,
)
from grader.judging.side_effects import find_side_effects
from grader.judging.trial import Finding, FindingError
from grader.problems.cases import OWN_SIZES, Case, has_own_sizes, too_few_sizes_warning
from grader.verdict import NOT_OWN_WORK, Reason, Stage, StageName, Status


def run(context: Context, stage: Stage) -> None:
    """Run every case, on the CPU with each tensor's end at a guard page; on a GPU the full size comes last."""
    cases = context.cases + ([context.problem.full()] if context.gpu else [])
    found: list[Finding] = []
    with keep_when_interrupted(stage, found):
        for number, case in enumerate(cases, 1):
            if found and found[-1].fatal:
                add_skipped_case(stage, case.name, Reason.not_reached)
                continue
            context.report(StageName.correct, f"case {number} of {len(cases)}: {case.name}")
            finding = _run_case(context, case, constructed=number == 1)
            add_case(stage, case.name, finding)
            found += [finding] if finding else []
            context.notify_case(finding)
    if found:
        fail_stage(stage, pick_clearest(found))
        common = describe_common(stage, cases, context.problem.literals)
        stage.message = _describe_own_sizes(context, stage, cases) + stage.message + common
    else:
        stage.message = too_few_sizes_warning(context.cases) if context.request.case is None else ""
    kernel_use.mark_missing_kernels(context, stage)
    if found and stage.reason not in NOT_OWN_WORK:
        context.observer.stage_failed(stage, context.problem, context.trials)


def _run_case(context: Context, case: Case, constructed: bool) -> Finding | None:
    """Run one case; return what is wrong with its outputs. What concerns "safe" is kept with the trial.

    constructed: the stage "build" has constructed the model for this case.
    """
    session = context.session
    try:
        trial = context.make_trial(case)
        if not constructed:
            session.construct(trial, "end")
        calls = session.run_forward(trial, calls=2)
        trial.difference = calls[0].difference
        trial.first_outputs = calls[0].outputs
        trial.launches = calls[0].run.launches
        trial.kinds = set(session.client.report.kinds)
        trial.side_findings = find_side_effects(trial, calls, session)
    except FindingError as error:
        return _refine_with_checks(context, case, error.finding)
    finally:
        context.release_memory()
    return findings.of_difference(trial.difference, trial.launches) if trial.difference else None


def _refine_with_checks(context: Context, case: Case, finding: Finding) -> Finding:
    """Return what a checked run finds where a plain run lacks thread and element; else the finding as it is.

    The processor reports no address of a misaligned access; of a write next to a tensor that no guard page caught,
    only the launch is known.
    """
    placeless = finding.reason is Reason.out_of_bounds and finding.evidence[0].thread is None
    if finding.fatal or not (placeless or finding.reason is Reason.misaligned):
        return finding
    checked = checked_runs.find_with_checks(context.session, context.make_trial(case))
    if checked is None or checked.reason is not finding.reason:
        # a worker that died in the checks runs no more cases
        return dataclasses.replace(finding, fatal=checked is not None and checked.fatal)
    return checked


def _describe_own_sizes(context: Context, stage: Stage, cases: list[Case]) -> str:
    """Return a sentence where the file's own sizes are right and what the grader added to them is not, or ""."""
    results = {result.name: result.status for result in stage.cases}
    own = [case for case in cases if has_own_sizes(context.problem, case)]
    is_right = bool(own) and all(results.get(case.name) is Status.passed for case in own)
    if not is_right or not any(case.made for case in cases):
        return ""
    return (
        "The submission is right at the problem's own sizes. It fails with other sizes or values, which the grader "
        "added because the problem file has no CASES. `grader grade --own-sizes` grades at the problem's own sizes "
        f'alone, and so does CASES = "{OWN_SIZES}" in the problem file. '
    )
