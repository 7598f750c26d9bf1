"""The stage "safe": memory accesses, races, and results that depend on the order of threads or on earlier calls."""

from __future__ import annotations

from grader.judging import checked_runs, findings, tolerance
from grader.judging.context import Context
from grader.judging.other_values import prepare_other_values
from grader.judging.possible_causes import describe_possible_causes
from grader.judging.results import add_case, fail_stage, skip_stage
from grader.judging.trial import Finding, FindingError, Trial
from grader.problems.cases import ProblemError
from grader.verdict import EXPLANATIONS, Reason, Stage, StageName, Status
from grader.worker.exchange import same_bits

READS = " reads "  # in a message on an access, as opposed to "writes"


def run(context: Context, stage: Stage) -> None:
    """Report what the runs of "correct" showed besides values; on the CPU run again with checks and in reverse order.

    Where "correct" failed, look at the failing case alone, for what may explain it.
    """
    failed = context.result(StageName.correct).status is Status.failed
    trials = [trial for trial in context.trials if trial.difference is not None][:1] if failed else context.trials
    asked = context.problem.allowed_operators is not None
    if failed and asked and not context.gpu and not any(trial.launches for trial in trials):
        skip_stage(stage, Reason.not_reached, "Not run, because the wrong case launches no kernel.")
        _complete_correct(context, context.result(StageName.correct), None)
        return
    first = None
    for number, trial in enumerate(trials, 1):
        context.report(StageName.safe, f"case {number} of {len(trials)}: {trial.case.name}")
        finding = _check(context, trial)
        add_case(stage, trial.case.name, finding)
        first = first or finding
        if finding is not None and finding.fatal:
            break
    if first is None and not failed:
        first = _find_with_other_values(context, trials)
    if first is not None:
        fail_stage(stage, first)
    if failed:
        _complete_correct(context, context.result(StageName.correct), first)


def _complete_correct(context: Context, correct: Stage, cause: Finding | None) -> None:
    """Complete the message of "correct" once it is known what the checks find in the wrong case.

    Memory that was read out of bounds holds the same pattern as memory that no thread wrote: the read is the reason.
    What may be misunderstood about weights and inputs is said only where nothing else explains wrong values.
    """
    if cause is None:
        if correct.reason is Reason.wrong_values:
            correct.message += describe_possible_causes(context, correct)
    elif correct.reason is Reason.not_written and cause.reason is Reason.out_of_bounds and READS in cause.message:
        for case in correct.cases:
            case.reason = cause.reason if case.reason is correct.reason else case.reason
        spread = correct.message.replace("memory that no thread wrote", "values computed from that memory", 1)
        correct.reason, correct.message = cause.reason, f"{cause.message}\n{spread}"
        correct.evidence = [*cause.evidence, *correct.evidence]


def _check(context: Context, trial: Trial) -> Finding | None:
    """Return the first thing that is wrong with a case besides its values."""
    if finding := checked_runs.find_with_checks(context.session, trial):
        return finding
    return trial.side_findings[0] if trial.side_findings else _find_in_reverse(context, trial)


def _find_in_reverse(context: Context, trial: Trial) -> Finding | None:
    """Run with the threads of each block in reverse order and each tensor's beginning at a guard page."""
    if context.gpu:
        return None
    try:
        call = checked_runs.run_reversed(context.session, trial)
    except FindingError as error:
        return error.finding
    if trial.difference is None:
        difference = call.difference
    else:
        before = [tensor.double() for tensor in trial.first_outputs]
        difference = tolerance.compare(call.outputs, before, trial.first_outputs, trial.case, trial.noise)
    if difference is None:
        return None
    finding = findings.of_difference(difference, call.run.launches)
    if not call.run.launches:
        message = (
            "A second ModelNew with the same arguments and weights gave other results, and no kernel was launched: "
            "look for what __init__ or forward draws at random."
        )
        finding.evidence[0].detail = "expected: the first one's value; got: the second one's"
        return Finding(Reason.nondeterministic, message, finding.evidence)
    finding.evidence[0].detail = "expected: with the threads in order; got: with the threads in reverse order"
    return Finding(Reason.schedule_dependent, EXPLANATIONS[Reason.schedule_dependent], finding.evidence)


def _find_with_other_values(context: Context, trials: list[Trial]) -> Finding | None:
    """Call one model twice, the second time with other values: a result kept from the first call is wrong then."""
    trials = [trial for trial in trials if trial.case in context.cases]  # the full size would take long
    if not trials:
        return None
    trial = max(trials, key=lambda trial: sum(t.numel() for t in trial.eager))
    try:
        second = prepare_other_values(trial)
        context.session.construct(trial, "end")
        kept = context.session.run_forward(trial)[0].outputs
        call = context.session.run_forward(second)[0]
        same = all(same_bits(old, new) for old, new in zip(kept, call.outputs))
    except ProblemError:  # Model does not take these values: a matrix that it inverts, say
        return None
    except FindingError as error:
        return error.finding
    finally:
        context.release_memory()
    if call.difference is None:
        return None
    finding = findings.of_difference(call.difference, call.run.launches)
    if not same:
        return finding
    message = (
        "forward returned the result of the previous call again, although the values of its inputs were different."
    )
    finding.evidence[0].pattern = None  # of numbers that have nothing to do with these inputs
    return Finding(Reason.output_reused, message, finding.evidence)
