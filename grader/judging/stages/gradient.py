"""The stage "gradient": forward and backward on every case, each gradient compared with float64's autograd of Model."""

from __future__ import annotations

import dataclasses
import re

import torch

from grader.judging import facts, findings, gradient_messages, tolerance
from grader.judging.checked_runs import MAX_REPETITIONS, explain_check, has_leak, keep_lasting_leaks
from grader.judging.context import Context
from grader.judging.gradients import compute_expected_gradients, does_rounding_pick
from grader.judging.results import (
    add_case,
    add_skipped_case,
    describe_common,
    fail_stage,
    keep_when_interrupted,
    pick_clearest,
    skip_stage,
)
from grader.judging.session import CHECKED, IN_ORDER, REVERSED, How, Pass
from grader.judging.trial import ExpectedGradients, Finding, FindingError, Trial
from grader.problems.cases import Case, ProblemError
from grader.verdict import Evidence, Reason, Stage, StageName, Status
from grader.worker import protocol
from grader.worker.exchange import GpuMemory, same_bits

# What the checks may explain.
VALUE_REASONS = {Reason.wrong_gradient, Reason.non_finite, Reason.not_written, Reason.low_precision}

# What is wrong with a gradient alone.
GRADIENT_REASONS = {*VALUE_REASONS, Reason.missing_gradient, Reason.gradient_shape}

# Exceptions of a submission that needs no gradient. A caller who wants one gets the exception, not a wrong gradient.
REFUSALS = {Reason.exception: "forward cannot run with one", Reason.backward_exception: "backward does not run"}


class NothingToCheck(Exception):
    """Raised where the submission has no gradient to check, and need not have one; the text is a sentence.

    reason: why this case has none, if the submission refused it: others may have some.
    """

    def __init__(self, sentence: str, reason: Reason | None = None):
        super().__init__(sentence)
        self.reason = reason


def run(context: Context, stage: Stage) -> None:
    """Check the gradients of every case.

    The submission's name requires them; else they are checked if forward's result carries a graph.
    """
    if not (context.requires_gradient or context.trials[0].instance.differentiable_later()):
        message = "This problem asks for no gradient, and Model's own is lost when Model is called again."
        skip_stage(stage, None, message)
        return
    found: list[Finding] = []
    try:
        with keep_when_interrupted(stage, found):
            _run_cases(context, stage, found)
    except NothingToCheck as why:
        if not found:
            stage.cases.clear()
            skip_stage(stage, None, str(why))
            return
    if found:
        finding = pick_clearest(found)
        if not context.requires_gradient and _is_accidental(finding, context.source.text):
            stage.cases.clear()
            skip_stage(stage, None, gradient_messages.explain_accidental(finding))
            return
        fail_stage(stage, finding if context.requires_gradient else gradient_messages.explain_unrequired(finding))
        stage.message += describe_common(stage, context.cases, context.problem.literals)
        context.observer.stage_failed(stage, context.problem, context.trials)
    elif not any(case.status is Status.passed for case in stage.cases):
        skip_stage(stage, None, stage.message or "No case of this problem asks for a gradient.")


def _is_accidental(finding: Finding, text: str) -> bool:
    """Return whether a wrong gradient is one that the submission does not claim: it has no backward of its own, and
    autograd computes one of the PyTorch operators around its kernels.
    """
    return finding.reason in GRADIENT_REASONS and not re.search("backward|autograd", text)


def _run_cases(context: Context, stage: Stage, found: list[Finding]) -> None:
    """Run every case that has a gradient; add what is wrong to `found`. Raises the first refusal at the end."""
    refusal = None
    trials = [trial for trial in context.trials if trial.case.gradient and trial.case.precision != "tf32"]
    for number, trial in enumerate(trials, 1):
        name = trial.case.name
        if found and found[-1].fatal:
            add_skipped_case(stage, name, Reason.not_reached)
            continue
        if trial.case not in context.cases and does_rounding_pick(trials[0].instance):
            add_skipped_case(stage, name)
            continue
        context.report(StageName.gradient, f"case {number} of {len(trials)}: {name}")
        try:
            finding = _run_case(context, trial)
        except torch.OutOfMemoryError:
            stage.message = f"The GPU is too small to compute the expected gradients of the case {name}."
            add_skipped_case(stage, name)
            continue
        except NothingToCheck as why:
            if why.reason is None:
                raise
            refusal = refusal or why
            add_skipped_case(stage, name, why.reason)
            continue
        add_case(stage, name, finding)
        found += [finding] if finding else []
        context.notify_case(finding)
    if refusal is not None:
        raise refusal


def _run_case(context: Context, trial: Trial) -> Finding | None:
    """Run one case; return what is wrong with its gradients."""
    right = _expect(context, trial)
    context.differentiated = right.inputs, right.parameters
    trial.gradients = None if context.gpu else right
    if not right.names:
        raise NothingToCheck("Nothing that Model is given or holds has a gradient.")
    try:
        return _GradientCheck(context, trial, right).run()
    except FindingError as error:
        refused = REFUSALS.get(error.finding.reason)
        if refused and not context.requires_gradient and not error.finding.fatal:
            message = f"This problem asks for no gradient, and {refused}: {error.finding.message}"
            raise NothingToCheck(message, error.finding.reason) from None
        return gradient_messages.translate_shape_error(error.finding)
    finally:
        context.release_memory()


def _expect(context: Context, trial: Trial) -> ExpectedGradients:
    """Return the expected gradients. Raises NothingToCheck, or ProblemError where there must be some."""
    if context.gpu:  # outputs are compared by now, and both processes share the card
        for one in context.trials:
            one.expected, one.noise = [], []
        torch.cuda.empty_cache()
    try:
        right = compute_expected_gradients(context.problem, trial, context.request.seed)
    except ProblemError as error:
        if context.requires_gradient:
            raise
        raise NothingToCheck(f"The problem's own Model cannot be differentiated: {error}") from None
    if context.gpu:  # give back what float64 took on the way
        torch.cuda.empty_cache()
    return right


class _GradientCheck:
    """One case: runs the submission's forward and backward in several ways and compares the gradients."""

    def __init__(self, context: Context, trial: Trial, right: ExpectedGradients):
        self.context, self.session = context, context.session
        self.trial, self.right = trial, right
        self.required = context.requires_gradient

    def run(self) -> Finding | None:
        """Return the first thing that is wrong. Raises FindingError and NothingToCheck."""
        self.session.construct(self.trial, "end")
        first = self.session.run_backward(self.trial, self.right)
        finding = self._find_missing(first) or self._find_wrong(first)
        if finding is not None:
            return self._explain_with_checks(finding) if finding.reason in VALUE_REASONS else finding
        return (
            self._find_modified(first)
            or self._find_with_checks(first)
            or self._find_nondeterminism(first)
            or self._find_in_other_use(first)
        )

    def _rerun(self, first: Pass, how: How = IN_ORDER, strided: bool = False, other: bool = False) -> Pass:
        """Run another pass, which must have the gradients that the first had."""
        return self._require_same(first, self.session.run_backward(self.trial, self.right, how, strided, other))

    def _require_same(self, first: Pass, again: Pass) -> Pass:
        """Return the second pass. Raises FindingError where it has other gradients than the first."""
        if [value is None for value in again.made] != [value is None for value in first.made]:
            message = "A second call gave gradients for other inputs and weights than the first."
            raise FindingError(Finding(Reason.nondeterministic_gradient, message, [self._evidence()]))
        return again

    def _evidence(self) -> Evidence:
        return Evidence(case=self.trial.case.name)

    def _find_missing(self, one: Pass) -> Finding | None:
        """Return a finding if there is no graph, or inputs or parameters that it does not reach."""
        right, graph = self.right, one.reply.graph
        names = [n for n, value in zip(right.names, one.made) if value is None] if graph else right.names
        if not names:
            return None
        if self.required:
            unknown = [right.names[n] for n in one.reply.unknown if 0 <= n < len(right.names)]
            message = gradient_messages.describe_missing(names, unknown, graph)
            evidence = [Evidence(case=self.trial.case.name, gradient=name) for name in names]
            return Finding(Reason.missing_gradient, message, evidence)
        if not graph:
            raise NothingToCheck("This problem asks for no gradient.")
        left = [name for name in names if right.names.index(name) not in one.reply.unknown]
        if left:
            quoted = gradient_messages.quote(left)
            raise NothingToCheck(
                f"This problem asks for no gradient; one reaches some of Model's weights and inputs, but not {quoted}."
            )
        return None

    def _find_wrong(self, one: Pass) -> Finding | None:
        """Return the first gradient that is wrong."""
        right = self.right
        for number, got in enumerate(one.made[: len(right.names)]):
            if got is None:
                continue
            case = self._make_case(number)
            against = (right.eager[number], case, right.noise[number], right.reductions[number])
            difference = tolerance.compare(got, right.expected[number], *against)
            if difference is None:
                continue
            # At a kink (a tie of max, an argument of 0 to relu) float64 and float32 may lie on different sides:
            # eager's side is right too.
            if difference.index is not None and tolerance.compare(got, right.eager[number].double(), *against) is None:
                continue
            finding = findings.of_difference(difference, one.reply.launches)
            return self._describe_wrong(number, got, finding)
        return None

    def _make_case(self, number: int) -> Case:
        """Return the case as a gradient is compared in it: each has a reduction of its own, and its dimensions have the
        outputs' names where it has an output's shape.
        """
        case, shape = self.trial.case, self.right.expected[number].shape
        axes = case.axes if any(shape == output.shape for output in self.trial.expected) else ()
        return Case(case.name, precision=case.precision, axes=axes)

    def _describe_wrong(self, number: int, got: torch.Tensor, finding: Finding) -> Finding:
        """Return compare's finding about an output as one about a gradient."""
        is_parameter, (evidence, *_) = number >= len(self.right.inputs), finding.evidence
        evidence.gradient = self.right.names[number]
        if is_parameter:
            evidence.wrong = None  # the map shows images and channels, which a weight does not have
        look = is_parameter and evidence.index is not None and not self.context.gpu
        part = _find_single_item(self.trial, self.right, number, got) if look else ""
        evidence.pattern = part or evidence.pattern
        return gradient_messages.describe_wrong(finding, evidence.gradient, part)

    def _explain_with_checks(self, finding: Finding) -> Finding:
        """Return the finding, after what the checks find in the same case, which is its cause."""
        cause = self._find_with_checks(None)
        if cause is None:
            return finding
        message, evidence = f"{cause.message}\n{finding.message}", cause.evidence + finding.evidence
        return dataclasses.replace(cause, message=message, evidence=evidence)

    def _find_with_checks(self, first: Pass | None) -> Finding | None:
        """Run forward and backward with all of simt's checks on; None on a GPU.

        first: a plain pass with the expected gradients, if there is one: the checked pass must be like it.
        """
        if self.context.gpu:
            return None
        try:
            one = self._run_like(first, CHECKED, "end", "when simt's checks are on")
            found = one.reply.found
            if has_leak(found):
                found = keep_lasting_leaks(
                    found, self.session.run_backward(self.trial, self.right, CHECKED).reply.found
                )
            elif first is not None and not found and (wrong := self._find_wrong(one)):
                return wrong
        except FindingError as error:
            return error.finding
        return explain_check(self.session, found, self.trial)

    def _run_like(self, first: Pass | None, how: How, guard: str, doing: str) -> Pass:
        """Run forward and backward of a new model. Raises FindingError if it launches other kernels than a plain pass.

        doing: the difference, for the message.
        """
        expected, launched, missing = first.kinds if first else set(), set(), ""
        for repetition in range(1 + MAX_REPETITIONS):
            if repetition:
                self.session.construct(self.trial, guard)
                plain = self.session.run_backward(self.trial, self.right, How(guard=guard))
                if wrong := self._find_wrong(plain):
                    raise FindingError(wrong)
                expected = plain.kinds
            self.session.construct(self.trial, guard)
            one = self.session.run_backward(self.trial, self.right, how)
            launched |= one.kinds
            missing = facts.find_missing(expected, launched)
            if one.reply.found or not missing:
                return one
        raise facts.contradict_launches(missing, doing, self.trial.case.name)

    def _find_modified(self, one: Pass) -> Finding | None:
        """Return a finding if backward wrote to what it may only read."""
        right = self.right
        given = [f"`{name}`" for name in right.names]
        given += ["the gradient that came in"] * len(right.upstream) + ["forward's result"] * len(self.trial.eager)
        names, (inputs, upstream) = self.trial.instance.names(), one.written
        modified = [f"`{names[n]}`" for n in inputs] + ["the gradient that came in"] * upstream
        modified = list(dict.fromkeys(modified + [given[n] for n in one.reply.modified if 0 <= n < len(given)]))
        if isinstance(self.session.exchange, GpuMemory):
            modified += _find_modified_memory(self.session.exchange, names)
        if not modified:
            return None
        message = gradient_messages.describe_modified(modified)
        return Finding(Reason.backward_modified, message, [self._evidence()])

    def _find_nondeterminism(self, first: Pass) -> Finding | None:
        """Run again, on the CPU with threads and blocks in reverse order.

        Where gradients are required, they must be the same to the last bit.
        """
        right, gpu = self.right, self.context.gpu
        kept: list[torch.Tensor | None] = (
            [None if value is None else value.clone() for value in first.made] if gpu else first.made
        )
        self.context.release_memory()
        reversed_pass = self._run_like(first, REVERSED, "front", "when threads run in reverse order")
        second = self._require_same(first, reversed_pass)
        for number, (name, a, b) in enumerate(zip(right.names, kept, second.made)):
            if a is None or b is None:
                continue
            if b.shape != a.shape or b.dtype != a.dtype:
                return self._find_wrong(second)
            if same_bits(a, b):
                continue
            case = self._make_case(number)
            difference = tolerance.compare(b, a.double(), a, case, right.noise[number], right.reductions[number])
            if difference is None and not self.required:
                continue
            return _describe_unsteady(case.name, name, a, b, difference, second.reply.launches)
        return None

    def _find_in_other_use(self, first: Pass) -> Finding | None:
        """Run with an upstream gradient that is not contiguous, and with another forward before the backward.

        Not at a GPU's full size, which lacks the memory.
        """
        if self.context.gpu and self.trial is self.context.trials[-1]:
            return None
        self.context.release_memory()
        self.session.construct(self.trial, "end")
        finding = self._find_wrong(self._rerun(first, strided=True, other=True))
        if finding is None:
            return None
        self.context.release_memory()
        alone = self._find_wrong(self._rerun(first, strided=True))
        reason = Reason.noncontiguous_gradient if alone else Reason.saved_overwritten
        when = (
            "When the gradient that comes in is not contiguous"
            if alone
            else "When forward is called a second time before backward"
        )
        shown = alone or finding
        return Finding(reason, f"{when}, {shown.message[:1].lower()}{shown.message[1:]}", shown.evidence)


def _find_modified_memory(memory: GpuMemory, names: list[str]) -> list[str]:
    """Return what changed of inputs and upstream gradients, which were shared in this order."""
    changed = [
        [isinstance(sent, protocol.Shared) and not same_bits(sent.tensor, value) for sent, value in pairs]
        for pairs in memory.given[-2:]
    ]
    modified = [f"`{names[n]}`" for n, yes in enumerate(changed[0]) if yes]
    return modified + (["the gradient that came in"] if any(changed[1]) else [])


def _find_single_item(trial: Trial, right: ExpectedGradients, number: int, got: torch.Tensor) -> str:
    """Return "only the last batch item's part", where that is what a parameter's gradient holds."""
    batch = right.upstream[0].shape[0] if right.upstream[0].dim() else 1
    if batch < 2 or any(up.dim() == 0 or up.shape[0] != batch for up in right.upstream):
        return ""
    for item, ordinal in ((batch - 1, "last"), (0, "first")):
        parts = [torch.zeros_like(up) for up in right.upstream]
        for part, up in zip(parts, right.upstream):
            part[item] = up[item]
        inputs, names = trial.instance.differentiable()
        every = trial.instance.expected_gradients(parts)
        expected = every[len(inputs) + names.index(right.names[number])]
        if expected is None:
            continue
        against = (expected.to(got.dtype), Case(""), right.noise[number], right.reductions[number])
        if tolerance.compare(got, expected, *against) is None:
            return f"only the {ordinal} batch item's part"
    return ""


def _describe_unsteady(
    case: str, name: str, a: torch.Tensor, b: torch.Tensor, difference: tolerance.Difference | None, launches: list
) -> Finding:
    """Return the finding of two runs that differ: by how much, and where if that is more than the last digits."""
    differ, gpu = a != b, a.is_cuda
    evidence = Evidence(case=case)
    if difference is not None:
        evidence = findings.of_difference(difference, launches).evidence[0]
        order = "" if gpu else ", with threads and blocks in reverse order"
        evidence.detail = f"expected: the first run's value; got: the second run's{order}"
    evidence.gradient, evidence.wrong_count, evidence.total = name, int(differ.sum()), a.numel()
    evidence.max_error = float((a.double() - b.double()).abs().nan_to_num(0.0).max())
    share = "by more than rounding explains" if difference else "in their last digits"
    order = "when it ran again" if gpu else "when threads and blocks ran in reverse order"
    count = f"{evidence.wrong_count:,} of {a.numel():,} values"
    message = f"The gradient of `{name}` is not the same twice: {count} differed {share} {order}."
    return Finding(Reason.nondeterministic_gradient, message, [evidence])
