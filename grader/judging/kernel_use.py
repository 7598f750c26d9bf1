"""Find out whether a submission's own kernels do the work, once its results are known to be right.

Four questions: was a kernel launched; are the results still right where kernels are launched and run no thread, which
means that they were not needed; who wrote the results to memory first, the host or a kernel; and which of PyTorch's
operators computed with large tensors. simt alone has idle launches and knows who writes what; on a GPU it is known
whether the submission built a kernel, and which operators ran.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterable

import torch

from grader.judging import findings
from grader.judging.context import Context
from grader.judging.gradients import compute_expected_gradients
from grader.judging.provenance import MEANWHILE, NO_WRITER, Result, find_host_work
from grader.judging.results import fail_stage
from grader.judging.session import IDLE, How
from grader.judging.side_effects import modifies_inputs
from grader.judging.stages import build
from grader.judging.tolerance import compare
from grader.judging.trial import ExpectedGradients, Finding, FindingError, Trial, prepare_trial
from grader.problems.cases import Case, ProblemError
from grader.source import syntax
from grader.verdict import EXPLANATIONS, NOT_OWN_WORK, Evidence, Reason, Stage, StageName, Status
from grader.worker import protocol
from grader.worker.operators import MOVING

LARGE = 4  # an operator counts if it reads or writes a tensor of 1 / LARGE of the largest input's elements
FEW = 256  # elements that an operator may have in any case but the largest
SHOWN = 5  # operators that a message names
OTHER_SEED = 0x5EED  # changes a seed into that of other values
SOMETIMES_NO_KERNEL = (
    "Kernels are launched for some values of the inputs alone: others get their results from the host."
)
NO_LAUNCH = " The submission launched no kernel, so that none of its cases counts."
HOST_ALONE = "forward launches no kernel and calls none of the operators that this problem allows."
NO_BUILD = "The submission builds no kernel."
UNKNOWN = (
    "The grader cannot tell whether the submission's own kernels compute this: it fails in a run with other values."
)
ASKED = {
    StageName.correct: (
        "\nThis problem asks for kernels of your own to compute the results: without them no stage counts."
    ),
    StageName.gradient: (
        "\nThis problem asks for kernels of your own to compute the gradients: without them this stage does not count."
    ),
}
# Findings on an output that lies in memory that the run did not allocate: who writes there is not recorded.
SHARED_OUTPUT = frozenset((Reason.input_modified, Reason.output_aliases_input, Reason.output_reused))
# Autograd adds the gradients of a tensor that is used twice.
OF_AUTOGRAD = frozenset(("add", "add_"))


def mark_missing_kernels(context: Context, stage: Stage) -> None:
    """Fail or mark "correct" if no kernel was built or launched; what else is wrong with it comes first.

    Where it has failed, no case counts as right. Where the problem allows operators, the forward of a NAME_backward
    needs no kernel: examine_forward() decides.
    """
    allowed, wrong = context.problem.allowed_operators, stage.status is not Status.passed
    if has_kernels(context) or (wrong and allowed is None) or (allowed and context.requires_gradient):
        return
    if wrong:
        right = [case for case in stage.cases if case.status is Status.passed]
        for case in right:
            case.status, case.reason = Status.failed, Reason.no_kernel
        stage.message += NO_LAUNCH if right else ""
        return
    message, evidence = EXPLANATIONS[Reason.no_kernel], []
    failed = context.session.client.failed_build
    if failed is not None:
        why = findings.of_failure(failed, context.source, context.session.client.sources, None, protocol.Build)
        message += f"\nIts own kernel did not compile, and it went on without it. {why.message}\n"
        evidence = why.evidence
    if not evidence and allowed is not None:
        evidence = _point_at(context, "forward")
    stage.reason, stage.message = Reason.no_kernel, f"{message} {stage.message}".strip()
    stage.evidence = evidence


def mark_missing_build(context: Context, stage: Stage) -> None:
    """Mark "build" if the problem asks for kernels, and the submission has built none that runs."""
    client = context.session.client
    built = len(client.sources) > (client.failed_build is not None)  # the sources of a build that failed are kept too
    if context.problem.allowed_operators is not None and not built and not any(one.launches for one in context.trials):
        stage.reason, stage.message = Reason.no_kernel, NO_BUILD


def has_kernels(context: Context) -> bool:
    """Return whether the submission launched a kernel in some case; on a GPU, which counts none, if it built one."""
    return bool(context.session.client.sources) if context.gpu else any(trial.launches for trial in context.trials)


def examine_forward(context: Context, stage: Stage) -> None:
    """Fail or mark "correct" if operators of PyTorch that the problem does not allow computed the results, or if they
    are right in every case although the kernels ran no thread.

    A missing kernel, which is marked already, leaves the verdict to "safe" where that has failed: it says more about
    the same results. The mark is kept, so that no stage earns points.
    """
    if stage.reason is not None and stage.status is Status.passed:
        asked = context.problem.allowed_operators is not None
        if asked and context.result(StageName.safe).status is not Status.failed:
            _tell(context, stage, Finding(stage.reason, stage.message, stage.evidence))
        return
    _examine(context, stage, lambda trials: _find_other_work(context, trials))


def _examine(context: Context, stage: Stage, find: Callable[[list[Trial]], Finding | None]) -> None:
    """Fail or mark a stage with what find() returns for the cases that are right.

    A run with other values may show that such a case is wrong. That fails the case and its stage; where a later stage
    has failed before, it marks the stage instead, because the verdict names the first stage that failed.
    """
    has_failed = any(one.status is Status.failed for one in context.results)
    restarts = 1 if has_failed else 0  # what failed may have ended the worker
    while trials := _list_right(context, stage):
        try:
            finding = find(trials)
            break
        except FindingError as error:
            finding = error.finding
        if finding.reason in NOT_OWN_WORK:
            break
        if finding.fatal and restarts:
            restarts -= 1
            build.restart(context)
            continue
        if has_failed and stage.status is Status.passed:
            stage.reason, stage.message = Reason.inconclusive, f"{UNKNOWN} {stage.message}".strip()
            return
        if stage.status is Status.passed:
            fail_stage(stage, finding)
        _fail_case(stage, finding)
    else:
        return
    if finding is not None:
        _tell(context, stage, finding)


def _list_right(context: Context, stage: Stage) -> list[Trial]:
    """Return the cases that are right in a stage."""
    right = {case.name for case in stage.cases if case.status is Status.passed}
    return [trial for trial in context.trials if trial.case.name in right]


def _fail_case(stage: Stage, finding: Finding) -> None:
    """Take away a case that was right; all of them where the finding names none, or where nothing can run any more."""
    right = [case for case in stage.cases if case.status is Status.passed]
    named = [case for case in right if finding.evidence and case.name == finding.evidence[0].case]
    for case in right if finding.fatal or not named else named:
        case.status, case.reason = Status.failed, finding.reason


def _find_other_work(context: Context, trials: list[Trial]) -> Finding | None:
    """Return what else than the submission's kernels computed the results of these cases."""
    used, host_work = _watch_forward(context, trials)
    if used:
        return _make_finding(context, "forward", used)
    if not (has_kernels(context) or context.problem.allowed_operators is None or _computes(context, trials[0])):
        return Finding(Reason.no_kernel, HOST_ALONE, _point_at(context, "forward"))
    if host_work:
        return Finding(Reason.unneeded_kernel, host_work, _point_at(context, "forward"))
    if context.gpu or not has_kernels(context) or any(_needs_kernels(context, trial) for trial in trials):
        return None
    return Finding(Reason.unneeded_kernel, EXPLANATIONS[Reason.unneeded_kernel], _point_at(context, "forward"))


def _watch_forward(context: Context, trials: list[Trial]) -> tuple[list[protocol.Operator], str]:
    """Return the operators that the problem does not allow, and in a sentence what else the host computed, in any case.

    Raises FindingError where forward fails on other values than before.
    """
    allowed = context.problem.allowed_operators
    if allowed is None:
        return [], ""
    trials = [trial for trial in trials if trial.case in context.cases]
    trials.sort(key=_count_elements, reverse=True)
    seen, host_work = {}, ""
    for trial in trials if not allowed and context.session.client.monitor is not None else []:
        least = _least(trial, trials[0])
        operators, host_work = _watch_unseen(context, trial, least)
        seen |= operators
        if not host_work and trial is trials[0]:
            host_work = _find_foreign_writes(context, trial, least)
        if host_work:
            break
    # The worker is told last: that run may end it, where Python code cannot be watched or takes long.
    told = {}
    for trial in trials if allowed else trials[:1]:
        operators = _list_told_operators(context, trial, _least(trial, trials[0]))
        told = {one.name: one for one in operators if one.name not in allowed} | told
    return _add_seen(list(told.values()), seen), host_work


def _watch_unseen(context: Context, trial: Trial, least: int) -> tuple[dict[str, int], str]:
    """Return the operators that simt's runtime sees in a run on other values, and what the host computed there."""
    session, other = context.session, _make_other_trial(context, trial)
    if other is None:
        return {}, ""
    session.construct(other, "end")
    (call,) = session.run_forward(other, How(unseen=least))
    if call.difference is not None:
        raise FindingError(findings.of_difference(call.difference, call.run.launches))
    report = session.client.report
    known = any(one.reason is Reason.input_modified for one in trial.side_findings)  # the stage "safe" reports it
    if report.writes and not known:
        if modifies_inputs(trial):
            return report.operators, ""
        message = f"{EXPLANATIONS[Reason.input_modified]} It does so for some values of the inputs alone."
        raise FindingError(Finding(Reason.input_modified, message, [Evidence(case=trial.case.name)]))
    if trial.launches and not report.launches:
        raise FindingError(Finding(Reason.no_kernel, SOMETIMES_NO_KERNEL, [Evidence(case=trial.case.name)]))
    results = [
        Result(got, expected, eager, noise, other.case)
        for got, expected, eager, noise in zip(call.outputs, other.expected, other.eager, other.noise)
    ]
    host_work = find_host_work(results, _list_given(other), report, least)
    shared = any(one.reason in SHARED_OUTPUT for one in trial.side_findings)
    return report.operators, "" if shared and host_work == NO_WRITER else host_work


def _find_foreign_writes(context: Context, trial: Trial, least: int, right: ExpectedGradients | None = None) -> str:
    """Return in a sentence that memory changes while kernels run, and none of their threads writes it; else nothing.

    It takes a run with the checks on, of forward, or of backward where the right gradients are given. A run that fails
    says nothing: the stage "safe" reports what fails with the checks on.
    """
    session, how = context.session, How(guard=None, check=True, unseen=least)
    other = _make_other_trial(context, trial) if right is None else trial
    if other is None:
        return ""
    try:
        session.construct(other, "end")
        if right is None:
            session.forward(other, how, calls=1)
        else:
            session.run_backward(other, right, how)
    except FindingError:
        return ""
    finally:
        context.release_memory()
    return MEANWHILE if any(record.meanwhile for record in session.client.report.recorded) else ""


def _list_told_operators(context: Context, trial: Trial, least: int) -> list[protocol.Operator]:
    """Return the operators of forward that the worker reports, with their lines."""
    try:
        context.session.construct(trial, "end")
        (call,) = context.session.run_forward(trial, How(watch=least))
    except FindingError:  # a forward that cannot be watched from Python; its results have been judged
        return []
    finally:
        context.release_memory()
    return call.run.operators


def _computes(context: Context, trial: Trial) -> bool:
    """Return whether operators of PyTorch compute in forward, as the worker reports them."""
    return bool(_list_told_operators(context, trial, least=1))


def _make_other_trial(context: Context, trial: Trial) -> Trial | None:
    """Return the case with other values: memory still holds the results of earlier runs. None if Model takes none."""
    try:
        instance = context.problem.instantiate(trial.case, context.request.seed ^ OTHER_SEED, context.device)
        return prepare_trial(trial.case, instance)
    except ProblemError:
        return None


def _list_given(trial: Trial) -> list:
    """Return inputs and weights, which the submission has from the start."""
    return [*trial.instance.inputs, *trial.instance.model.state_dict().values()]


def _add_seen(told: list[protocol.Operator], operators: Iterable[str]) -> list[protocol.Operator]:
    """Return the operators that the worker reports, and those that simt's runtime has seen in whatever thread."""
    lines = {one.name: one.line for one in told}
    seen = [name.removeprefix("aten::") for name in operators if name.startswith("aten::")]
    lines |= {name: None for name in seen if name not in lines and computes(name)}
    return [protocol.Operator(name, line) for name, line in lines.items()]


def computes(name: str) -> bool:
    """Return whether an operator of PyTorch computes tensors: it is no view, moves no elements, and is not made up of
    other operators, which are seen themselves.
    """
    try:
        packet = getattr(torch.ops.aten, name, None)
    except RuntimeError:  # no operator can have this name
        return False
    # A submission may register an operator under a name that is an attribute of the namespace itself.
    if not isinstance(packet, torch._ops.OpOverloadPacket) or name in MOVING:
        return False
    overloads = [getattr(packet, each) for each in packet.overloads()]
    makes_tensors = any("Tensor" in str(one.type) for each in overloads for one in each._schema.returns)
    return makes_tensors and not any(each.is_view or _is_composite(each.name()) for each in overloads)


def _is_composite(overload: str) -> bool:
    """Return whether an overload of an operator is made up of other operators."""
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(overload, "CompositeImplicitAutograd")
    except RuntimeError:  # one of TorchScript's own, as aten::add.t for lists, which the dispatcher does not have
        return False


def _needs_kernels(context: Context, trial: Trial) -> bool:
    try:
        context.session.construct(trial, "end")
        return context.session.run_forward(trial, IDLE)[0].difference is not None
    except FindingError:
        return True


def examine_backward(context: Context, stage: Stage) -> None:
    """Do for the gradients what examine_forward() does for the results, where the problem asks for gradients (CPU)."""
    told = context.result(StageName.correct).reason is not None
    if not (told or context.gpu or not context.requires_gradient):
        _examine(context, stage, lambda trials: _find_other_gradients(context, trials))


def _find_other_gradients(context: Context, right_trials: list[Trial]) -> Finding | None:
    """Return what else than the submission's kernels computed the gradients of these cases."""
    trials = [(trial, trial.gradients) for trial in right_trials if trial.gradients is not None]
    if not trials:
        return None
    used, host_work = _watch_backward(context, *max(trials, key=lambda each: _count_elements(each[0])))
    if used:
        return _make_finding(context, "backward", used)
    if host_work:
        return Finding(Reason.unneeded_kernel, host_work, _point_at(context, "backward"))
    launched = False
    for trial, right in trials:
        try:
            context.session.construct(trial, "end")
            one = context.session.run_backward(trial, right, IDLE)
        except FindingError:
            return None
        if not _are_right(right, one.made):
            return None
        launched = launched or bool(one.reply.launches)
    reason, message = (
        (Reason.unneeded_kernel, "The gradients stay right when backward's kernels do nothing: PyTorch's own operators")
        if launched
        else (Reason.no_kernel, "backward launched no kernel: PyTorch's own operators")
    )
    return Finding(reason, f"{message} compute the gradients.", _point_at(context, "backward"))


def _watch_backward(context: Context, trial: Trial, right: ExpectedGradients) -> tuple[list[protocol.Operator], str]:
    """Do for backward what _watch_forward() does for forward."""
    allowed = context.problem.allowed_operators
    if allowed is None:
        return [], ""
    session, least = context.session, _least(trial, trial)
    told = trial, right
    other = None if allowed or session.client.monitor is None else _make_other_trial(context, trial)
    with contextlib.suppress(ProblemError):
        if other is not None:
            right = compute_expected_gradients(context.problem, other, context.request.seed ^ OTHER_SEED)
    if other is None or right is told[1]:
        return _list_told_operators_of_backward(context, *told, least), ""
    session.construct(other, "end")
    one = session.run_backward(other, right, How(unseen=least))
    report = session.client.report
    if report.writes:
        message = f"{EXPLANATIONS[Reason.backward_modified]} It does so for some values of the inputs alone."
        raise FindingError(Finding(Reason.backward_modified, message, [Evidence(case=trial.case.name)]))
    if not one.reply.launches:
        session.construct(trial, "end")
        if session.run_backward(trial, told[1], IDLE).reply.launches:
            raise FindingError(Finding(Reason.no_kernel, SOMETIMES_NO_KERNEL, [Evidence(case=trial.case.name)]))
        return [], ""
    if not _are_right(right, one.made):
        message = f"{EXPLANATIONS[Reason.wrong_gradient]} Other values than those of the cases show it."
        raise FindingError(Finding(Reason.wrong_gradient, message, [Evidence(case=trial.case.name)]))
    results = [
        Result(got, expected, eager, noise, Case(""), reduction)
        for got, expected, eager, noise, reduction in zip(
            one.made, right.expected, right.eager, right.noise, right.reductions
        )
        if got is not None
    ]
    summed = any(name.removeprefix("aten::") in OF_AUTOGRAD for name in report.operators)
    given = [*_list_given(other), *right.upstream, *other.eager]
    host_work = find_host_work(results, given, report, least, summed)
    host_work = host_work or _find_foreign_writes(context, other, least, right)
    used = _add_seen(_list_told_operators_of_backward(context, *told, least), report.operators)
    return [each for each in used if each.name not in OF_AUTOGRAD], host_work


def _list_told_operators_of_backward(
    context: Context, trial: Trial, right: ExpectedGradients, least: int
) -> list[protocol.Operator]:
    """Return the operators of backward that the worker reports and the problem does not allow, with their lines."""
    allowed = (context.problem.allowed_operators or frozenset()) | OF_AUTOGRAD
    try:
        context.session.construct(trial, "end")
        reply = context.session.run_backward(trial, right, How(watch=least)).reply
    except FindingError:  # a backward that cannot be watched from Python
        return []
    return [one for one in reply.operators if one.name not in allowed] if reply.launches else []


def _are_right(right: ExpectedGradients, made: list[torch.Tensor | None]) -> bool:
    """Return whether every gradient is right, on float64's or on eager's side of a kink."""
    for number, got in enumerate(made):
        if got is None:
            return False
        against = (right.eager[number], Case(""), right.noise[number], right.reductions[number])
        expected = right.expected[number], right.eager[number].double()
        if all(compare(got, one, *against) is not None for one in expected):
            return False
    return bool(made)


def _count_elements(trial: Trial) -> int:
    """Return the number of elements of the largest input."""
    return max((value.numel() for value in trial.instance.inputs if isinstance(value, torch.Tensor)), default=1)


def _least(trial: Trial, largest: Trial) -> int:
    """Return from how many elements on a tensor of this case counts as large."""
    if trial is largest:
        return max(1, _count_elements(trial) // LARGE)
    weights = trial.instance.model.state_dict().values()
    most = max((each.numel() for each in (*weights, *trial.eager)), default=1)
    return max(FEW, _count_elements(trial) // LARGE, most // LARGE)


def _make_finding(context: Context, method: str, used: list[protocol.Operator]) -> Finding:
    """Return the finding of operators, at the lines that called them."""
    shown = ", ".join(f"`{one.name[:80]}`" for one in used[:SHOWN]) + (" …" if len(used) > SHOWN else "")
    operators = "operator" if len(used) == 1 else "operators"
    message = f"{method} computes with PyTorch's {operators} {shown}."
    lines = dict.fromkeys(one.line for one in used[:SHOWN] if one.line)
    evidence = [Evidence(line=line, text=context.source.line(line) or None) for line in lines]
    return Finding(Reason.torch_operator, message, evidence or _point_at(context, method))


def _point_at(context: Context, method: str) -> list[Evidence]:
    """Return where the last method of this name, ModelNew's if it has one, returns; else where it is defined."""
    classes = [node for node in ast.walk(syntax.parse(context.source.text)) if isinstance(node, ast.ClassDef)]
    classes.sort(key=lambda node: node.name == "ModelNew")
    methods = [each for node in classes for each in node.body if getattr(each, "name", "") == method]
    returns = [node.lineno for each in methods[-1:] for node in ast.walk(each) if isinstance(node, ast.Return)]
    line = max(returns, default=methods[-1].lineno if methods else 0)
    return [Evidence(line=line, text=context.source.line(line) or None)] if line else []


def _tell(context: Context, stage: Stage, finding: Finding) -> None:
    """Fail the stage where the problem asks for kernels; else mark it, which passes. What it said before follows."""
    message, before = finding.message, stage.message if stage.status is Status.failed else ""
    if context.problem.allowed_operators is not None:
        message += ASKED[stage.name] + (f"\n{before}" if before else "")
        known, stage.evidence = stage.evidence, []
        fail_stage(stage, Finding(finding.reason, message, [*finding.evidence, *known]))
    else:
        stage.reason, stage.message = finding.reason, f"{message} {stage.message}".strip()
        stage.evidence = [*stage.evidence, *finding.evidence]
