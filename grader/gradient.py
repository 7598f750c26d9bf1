"""The stage "gradient": forward and backward on every case, each gradient beside float64's autograd of the problem's Model."""

from __future__ import annotations

import dataclasses
import re

import torch

from grader import channel, compare, findings
from grader.cases import Case, ProblemError
from grader.exchange import same_bits
from grader.findings import Finding
from grader.judge import CHECKED, MIB, Found, clearest, nonsense
from grader.verdict import CaseResult, Evidence, Reason, StageName, Status

# What compare calls a wrong output -> what it is in a gradient. Other reasons are the same for both.
REASONS = {
    Reason.wrong_values: Reason.wrong_gradient,
    Reason.constant_output: Reason.wrong_gradient,
    Reason.wrong_shape: Reason.gradient_shape,
    Reason.wrong_dtype: Reason.gradient_shape,
}
BY_VALUES = {Reason.wrong_gradient, Reason.non_finite, Reason.not_written, Reason.low_precision}  # what the checks may explain

STARTS = {  # how compare begins to speak of an output -> how that is said of a gradient
    "The values are wrong": "{} is wrong",
    "The values are right": "{} is right",
    "The output": "{}",
    "Every value": "{}: every value",
    "The shape is": "{} has the shape",
    "The dtype is": "{} has the dtype",
}


class NotAsked(Exception):
    """The submission has no gradient to check, and need not have one; the text is a sentence."""


@dataclasses.dataclass
class Truth:
    """The right gradients of one case. names: of each input and parameter that has one; inputs, parameters: which those are.

    upstream: what backward starts with. reductions: how many terms are summed for an element of each gradient.
    """

    names: list[str]
    inputs: list[int]
    parameters: list[str]
    upstream: list[torch.Tensor]
    expected: list[torch.Tensor]
    eager: list[torch.Tensor]
    noise: list[torch.Tensor | None]
    reductions: list[int]


@dataclasses.dataclass
class Pass:
    """One forward and backward: the worker's report, and a tensor for each gradient, or None."""

    reply: channel.Gradients
    made: list[torch.Tensor | None]


def truth(problem, trial, seed: int) -> Truth:
    """The right gradients. Raises ProblemError where Model has none."""
    instance, case = trial.instance, trial.case
    upstream = problem.upstream(case, seed, trial.eager)
    eager, most = instance.gradients(upstream)
    inputs, parameters = instance.differentiable()
    called = instance.names()
    names = [called[n] for n in inputs] + parameters
    has = [number for number, value in enumerate(eager) if value is not None]
    expected = instance.expected_gradients(upstream)
    try:
        noise = instance.gradient_noise(upstream, expected)
    except torch.OutOfMemoryError:  # eager's own error tells the level too
        noise = [None] * len(expected)
    terms = sum(out.numel() for out in upstream) * (case.reduction or compare.DEFAULT_REDUCTION)
    return Truth(
        names=[names[n] for n in has],
        inputs=[inputs[n] for n in has if n < len(inputs)],
        parameters=[parameters[n - len(inputs)] for n in has if n >= len(inputs)],
        upstream=upstream,
        expected=[expected[n] for n in has],
        eager=[eager[n] for n in has],
        noise=[noise[n] for n in has],
        # As many as reach an element if each output is a sum of `reduction` terms, and no more than Model sums at once.
        reductions=[max(1, min(most, -(-terms // max(1, eager[n].numel())))) for n in has],
    )


class Gradients:
    """The stage for one grading. judge: what grades the submission. required: whether it must have gradients."""

    def __init__(self, judge, required: bool):
        self.judge, self.required = judge, required

    def check(self, stage) -> None:
        """Every case whose gradient is one number; the stage is settled, or skipped with a sentence."""
        judge = self.judge
        trials = [trial for trial in judge.trials if trial.case.gradient and trial.case.precision == "fp32"]
        found: list[Finding] = []
        try:
            for number, trial in enumerate(trials, 1):
                if found and found[-1].fatal:
                    stage.cases.append(CaseResult(name=trial.case.name, status=Status.skipped, reason=Reason.not_reached))
                    continue
                if trial.case not in judge.cases and rounding_picks(trials[0].instance):
                    stage.cases.append(CaseResult(name=trial.case.name, status=Status.skipped))
                    continue
                judge.progress(StageName.gradient, f"case {number} of {len(trials)}: {trial.case.name}")
                try:
                    finding = self._try(trial)
                except torch.OutOfMemoryError:
                    stage.message = f"The GPU is too small to work out the right gradients of the case {trial.case.name}."
                    stage.cases.append(CaseResult(name=trial.case.name, status=Status.skipped))
                    continue
                status = Status.failed if finding else Status.passed
                stage.cases.append(CaseResult(name=trial.case.name, status=status, reason=finding.reason if finding else None))
                found += [finding] if finding else []
                judge.look_beside(finding)
        except NotAsked as why:
            if not found:
                stage.cases.clear()
                judge.skip(stage, None, str(why))
                return
        if found:
            judge.settle(stage, self._unasked(clearest(found)))
            judge.looked_at(stage)
        elif not any(case.status is Status.passed for case in stage.cases):
            judge.skip(stage, None, stage.message or "No case of this problem asks for a gradient.")

    def _unasked(self, finding: Finding) -> Finding:
        """Why a gradient is graded that the problem does not ask for, where that needs saying."""
        if self.required:
            return finding
        said = "\nThis problem asks for no gradient, but the result carries one: make it right with a torch.autograd.Function, or return the result detached."
        return dataclasses.replace(finding, message=finding.message + said)

    def _try(self, trial) -> Finding | None:
        """One case; what is wrong with its gradients."""
        judge = self.judge
        judge.make_room()
        try:
            right = truth(judge.problem, trial, judge.seed)
        except ProblemError as error:
            if self.required:
                raise
            raise NotAsked(f"The problem's own Model cannot be differentiated: {error}") from None
        if judge.gpu:  # what float64 took on the way is the worker's again
            torch.cuda.empty_cache()
        judge.differentiated = right.inputs, right.parameters
        trial.truth = None if judge.gpu else right
        if not right.names:
            raise NotAsked("Nothing that Model is given or holds has a gradient.")
        try:
            judge.construct(trial, "end")
            first = self._run(trial, right)
            finding = self._missing(trial, right, first) or self._wrong(trial, right, first)
            if finding is not None:
                return self._explained(trial, right, finding) if finding.reason in BY_VALUES else finding
            return (
                self._modified(trial, right, first)
                or self._checked(trial, right)
                or self._again(trial, right, first)
                or self._otherwise(trial, right, first)
            )
        except Found as found:
            if not self.required and not found.finding.fatal and found.finding.reason is Reason.exception:
                raise NotAsked(f"This problem asks for no gradient, and forward cannot run with one: {found.finding.message}") from None
            return _in_words(found.finding)
        finally:
            judge.release()

    # -- passes --

    def _run(self, trial, right: Truth, schedule: str = "forward", guard: str | None = "end", strided=False, other=False, check=False) -> Pass:
        """One forward and backward in the worker."""
        judge, case = self.judge, trial.case.name
        size = sum(t.numel() * t.element_size() for t in right.eager)
        command = channel.Gradient(
            inputs=judge.exchange.inputs(trial.instance.inputs),
            differentiable=right.inputs,
            parameters=right.parameters,
            upstream=judge.exchange.inputs(right.upstream),
            strided=strided,
            other=judge.exchange.inputs([_other(value) for value in trial.instance.inputs]) if other else [],
            outputs=judge.exchange.rooms(right.eager),
            schedule=schedule,
            guard=guard,
            kernel_seconds=min(judge.limits.own * 0.9, judge.limits.kernel * CHECKED) if check else judge.limits.kernel,
            seconds=judge.limits.own,
            max_bytes=4 * size + MIB,
            check=check,
        )
        reply = judge.ask(command, "backward", case, command.max_bytes + MIB)
        if not isinstance(reply, channel.Gradients):
            raise Found(nonsense(case))
        if not reply.graph or reply.found:
            return Pass(reply, [])
        if len(reply.results) != len(right.names):
            raise Found(nonsense(case))
        return Pass(reply, self._tensors(trial, right, reply))

    def _tensors(self, trial, right: Truth, reply: channel.Gradients) -> list[torch.Tensor | None]:
        """The gradients; one that did not travel is there in shape and dtype alone."""
        try:
            made = self.judge.exchange.results(reply, -1)
            for number, result in enumerate(reply.results):
                if result is not None and made[number] is None:
                    made[number] = torch.empty(result.shape, dtype=channel.DTYPES[result.dtype], device="meta")
        except (channel.ChannelError, RuntimeError, TypeError, KeyError):
            raise Found(nonsense(trial.case.name)) from None
        for value, eager in zip(made, right.eager):
            if value is not None and value.device.type == "meta" and (value.shape, value.dtype) == (eager.shape, eager.dtype):
                raise Found(nonsense(trial.case.name))  # nothing keeps it from travelling
        return made

    def _rerun(self, trial, right: Truth, first: Pass, *arguments, **options) -> Pass:
        """Another pass, which must have the gradients that the first had."""
        again = self._run(trial, right, *arguments, **options)
        if [value is None for value in again.made] != [value is None for value in first.made]:
            said = "A second call gave gradients of other inputs and weights than the first."
            raise Found(Finding(Reason.nondeterministic_gradient, said, [Evidence(case=trial.case.name)]))
        return again

    # -- what is wrong with them --

    def _missing(self, trial, right: Truth, one: Pass) -> Finding | None:
        """No graph, or some inputs or parameters that it does not reach."""
        names = right.names if not one.reply.graph else [n for n, value in zip(right.names, one.made) if value is None]
        if not names:
            return None
        if not self.required:
            if not one.reply.graph:
                raise NotAsked("This problem asks for no gradient.")
            left = [name for name in names if right.names.index(name) not in one.reply.unknown]
            if left:
                raise NotAsked(f"This problem asks for no gradient; one reaches some of Model's weights and inputs, but not {_listed(left)}.")
            return None
        unknown = [right.names[n] for n in one.reply.unknown if 0 <= n < len(right.names)]
        if not one.reply.graph:
            said = f"forward's result carries no gradient, so {_listed(names)} get{'s' if len(names) == 1 else ''} none"
        elif unknown:
            said = f"ModelNew has no parameter {_listed(unknown)}, so there is no gradient of it: name parameters as Model does"
        else:
            said = f"{_listed(names)} get{'s' if len(names) == 1 else ''} no gradient"
        said = f"{said[0].upper()}{said[1:]}." if not said.startswith("forward") else f"{said}."
        return Finding(Reason.missing_gradient, said, [Evidence(case=trial.case.name, gradient=name) for name in names])

    def _wrong(self, trial, right: Truth, one: Pass) -> Finding | None:
        """The first gradient that is not right."""
        for number, name in enumerate(right.names):
            got = one.made[number]
            if got is None:
                continue
            case = Case(trial.case.name)
            against = (right.eager[number], case, right.noise[number], right.reductions[number])
            difference = compare.compare(got, right.expected[number], *against)
            if difference is None:
                continue
            # At a kink (a tie of max, an argument of 0 to relu) float64 and float32 may stand on different sides: eager's side is right too.
            if difference.index is not None and compare.compare(got, right.eager[number].double(), *against) is None:
                continue
            return self._told(trial, right, number, got, findings.of_difference(difference, one.reply.launches))
        return None

    def _told(self, trial, right: Truth, number: int, got: torch.Tensor, finding: Finding) -> Finding:
        """What compare says of an output, said of a gradient."""
        name, (evidence, *_) = right.names[number], finding.evidence
        evidence.gradient = name
        if number >= len(right.inputs):
            evidence.wrong = None  # what is drawn of it are images and channels, which a weight does not have
        start = next((start for start in STARTS if finding.message.startswith(start)), "")
        said = f"{STARTS.get(start, '{}: ').format(f'The gradient of `{name}`')}{finding.message.removeprefix(start)}"
        if evidence.index is not None and number >= len(right.inputs) and (part := self._alone(trial, right, number, got)):
            evidence.pattern = part
            said = f"{said.rstrip('.')}. It holds {part}."
        return Finding(REASONS.get(finding.reason, finding.reason), said, [evidence])

    def _alone(self, trial, right: Truth, number: int, got: torch.Tensor) -> str:
        """"only the last batch item's part", where that is what a parameter's gradient is."""
        batch = right.upstream[0].shape[0] if right.upstream[0].dim() else 1
        if batch < 2 or any(up.dim() == 0 or up.shape[0] != batch for up in right.upstream) or self.judge.gpu:
            return ""
        for place, word in ((batch - 1, "last"), (0, "first")):
            parts = [torch.zeros_like(up) for up in right.upstream]
            for part, up in zip(parts, right.upstream):
                part[place] = up[place]
            inputs, names = trial.instance.differentiable()
            every = trial.instance.expected_gradients(parts)
            expected = every[len(inputs) + names.index(right.names[number])]
            if expected is None:
                continue
            against = (expected.to(got.dtype), Case(""), right.noise[number], right.reductions[number])
            if compare.compare(got, expected, *against) is None:
                return f"only the {word} batch item's part"
        return ""

    def _explained(self, trial, right: Truth, finding: Finding) -> Finding:
        """The finding, or what the checks find in the same case, which comes first as its cause."""
        cause = self._checked(trial, right)
        if cause is None:
            return finding
        return dataclasses.replace(cause, message=f"{cause.message}\n{finding.message}", evidence=cause.evidence + finding.evidence)

    def _checked(self, trial, right: Truth) -> Finding | None:
        """Forward and backward with all of simt's checks on."""
        judge = self.judge
        if judge.gpu:
            return None
        try:
            judge.construct(trial, "end")
            found = self._run(trial, right, guard=None, check=True).reply.found
        except Found as found:
            return found.finding
        return findings.of_check(found[0], judge.source, judge.client.sources, trial.case.name) if found else None

    def _modified(self, trial, right: Truth, one: Pass) -> Finding | None:
        """What backward wrote to that it was only to read."""
        given = [f"`{name}`" for name in right.names]
        given += ["the gradient that came in"] * len(right.upstream) + ["forward's result"] * len(trial.eager)
        modified = [given[n] for n in one.reply.modified if 0 <= n < len(given)]
        if self.judge.gpu:  # here the judge looks for itself: inputs and upstream gradients were shared in this order
            names = trial.instance.names()
            shared = self.judge.exchange.given[-2:]
            changed = [[isinstance(sent, channel.Shared) and not same_bits(sent.tensor, value) for sent, value in pairs] for pairs in shared]
            modified += [f"`{names[n]}`" for n, yes in enumerate(changed[0]) if yes] + (["the gradient that came in"] if any(changed[1]) else [])
        if not modified:
            return None
        said = f"backward changed {_joined(list(dict.fromkeys(modified)))}: write to a new tensor."
        return Finding(Reason.backward_modified, said, [Evidence(case=trial.case.name)])

    def _again(self, trial, right: Truth, first: Pass) -> Finding | None:
        """Once more, on the CPU with threads and blocks in reverse order: where gradients are required, the same to the last bit."""
        kept = [None if value is None else value.clone() for value in first.made] if self.judge.gpu else first.made
        self.judge.release()
        self.judge.construct(trial, "front")
        second = self._rerun(trial, right, first, "reverse", "front")
        for number, (name, a, b) in enumerate(zip(right.names, kept, second.made)):
            if a is None:
                continue
            if b.shape != a.shape or b.dtype != a.dtype:
                return self._wrong(trial, right, second)
            if same_bits(a, b):
                continue
            exact = compare.compare(b, a.double(), a, Case(trial.case.name), right.noise[number], right.reductions[number])
            if exact is None and not self.required:
                continue
            return self._unsteady(trial, name, a, b, exact, second.reply.launches)
        return None

    def _unsteady(self, trial, name: str, a: torch.Tensor, b: torch.Tensor, difference, launches: list) -> Finding:
        """Two runs that differ: by how much, and where if that is more than the last digits."""
        differ, gpu = a != b, self.judge.gpu
        evidence = Evidence(case=trial.case.name)
        if difference is not None:
            evidence = findings.of_difference(difference, launches).evidence[0]
            evidence.detail = "expected: the first run's value; got: the second run's" + ("" if gpu else ", with threads and blocks in reverse order")
        evidence.gradient, evidence.wrong_count, evidence.total = name, int(differ.sum()), a.numel()
        evidence.max_error = float((a.double() - b.double()).abs().nan_to_num(0.0).max())
        share = "by more than rounding explains" if difference else "in their last digits"
        order = "when it ran again" if gpu else "when threads and blocks ran in reverse order"
        said = f"The gradient of `{name}` is not the same twice: {evidence.wrong_count:,} of {a.numel():,} values differed {share} {order}."
        return Finding(Reason.nondeterministic_gradient, said, [evidence])

    def _otherwise(self, trial, right: Truth, first: Pass) -> Finding | None:
        """With an upstream gradient that is not contiguous, and with another forward before the backward. Not at a GPU's full size: the memory."""
        if self.judge.gpu and trial is self.judge.trials[-1]:
            return None
        self.judge.release()
        self.judge.construct(trial, "end")
        finding = self._wrong(trial, right, self._rerun(trial, right, first, strided=True, other=True))
        if finding is None:
            return None
        self.judge.release()
        alone = self._wrong(trial, right, self._rerun(trial, right, first, strided=True))
        reason = Reason.noncontiguous_gradient if alone else Reason.saved_overwritten
        when = "When the gradient that comes in is not contiguous" if alone else "When forward is called a second time before backward"
        shown = alone or finding
        return Finding(reason, f"{when}, {shown.message[:1].lower()}{shown.message[1:]}", shown.evidence)


def rounding_picks(instance) -> bool:
    """Whether the largest of several sums goes on: of a full size's many, some are so near to each other that rounding decides which."""
    watch = instance.watched()[1]
    return watch.picks and watch.reduction > 1


INVALID = re.compile(r"returned an invalid gradient at index (\d+) - got (\[[\d, ]*\]) but expected shape compatible with (\[[\d, ]*\])")


def _in_words(finding: Finding) -> Finding:
    """torch's words on a gradient's shape in ours."""
    match = INVALID.search(finding.message)
    if finding.reason is not Reason.gradient_shape or not match:
        return finding
    number, got, wanted = int(match[1]) + 1, match[2], match[3]
    said = f"backward returned a gradient of shape {got} for argument {number} of its forward, whose shape is {wanted}."
    return dataclasses.replace(finding, message=said)


def _other(value: object) -> object:
    """An input of the same kind with other values."""
    return 1 - value if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _listed(names: list[str]) -> str:
    return _joined([f"`{name}`" for name in names])


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
