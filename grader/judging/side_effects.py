"""Find side effects in two calls of forward: changed inputs, shared memory, results that differ."""

from __future__ import annotations

import torch

from grader.judging import facts, findings, tolerance
from grader.judging.session import Call, Session
from grader.judging.trial import Finding, Trial
from grader.problems.values import copy_values, flatten
from grader.verdict import EXPLANATIONS, Evidence, Reason
from grader.worker.exchange import same_bits
from grader.worker.protocol import overlap


def find_side_effects(trial: Trial, calls: list[Call], session: Session) -> list[Finding]:
    """Return the findings on side effects in two calls on the same inputs."""
    case, found = trial.case.name, []
    modified = sorted({n for call in calls for n in call.modified})
    if modified and not modifies_inputs(trial):
        writes = _list_writes(calls, session)
        message = f"forward changed {_list_inputs(trial, modified)}: write to a new tensor.{_describe_writes(writes)}"
        found.append(Finding(Reason.input_modified, message, [Evidence(case=case), *writes]))
    aliases = sorted({n for call in calls for n in call.run.aliases})
    if aliases and not _model_aliases(trial):
        message = f"The output shares memory with {_list_inputs(trial, aliases)}: return a new tensor."
        found.append(Finding(Reason.output_aliases_input, message, [Evidence(case=case)]))
    elif any(call.run.reuses for call in calls) and not aliases:
        found.append(Finding(Reason.output_reused, EXPLANATIONS[Reason.output_reused], [Evidence(case=case)]))
    return found or _find_nondeterminism(trial, calls, session.gpu)


def modifies_inputs(trial: Trial) -> bool:
    """Return whether the problem's own Model changes its inputs, so that a submission may."""
    inputs = copy_values(trial.instance.inputs)
    before = [value._version if isinstance(value, torch.Tensor) else 0 for value in inputs]
    with trial.instance.blame(), torch.no_grad():
        trial.instance.build()(*inputs)
    return any(
        isinstance(a, torch.Tensor) and (a._version != version or not torch.equal(a, b))  # the same values count too
        for a, version, b in zip(inputs, before, trial.instance.inputs)
    )


def _find_nondeterminism(trial: Trial, calls: list[Call], gpu: bool) -> list[Finding]:
    """Return a finding where two calls on the same inputs differ by more than rounding."""
    first, second = calls[0], calls[1]
    if any(t.device.type == "meta" for t in (*first.outputs, *second.outputs)):
        return []
    alike = [a.shape == b.shape and a.dtype == b.dtype for a, b in zip(first.outputs, second.outputs)]
    if all(alike) and all(same_bits(a, b) for a, b in zip(first.outputs, second.outputs)):
        return []
    if first.difference is None:
        difference = second.difference
    else:
        exact = [t.double() for t in first.outputs]
        difference = tolerance.compare(second.outputs, exact, first.outputs, trial.case, trial.noise)
    if difference is None:
        return []
    evidence = findings.of_difference(difference, second.run.launches).evidence
    expected = "the right value" if first.difference is None else "the first run's value"
    evidence[0].detail = f"expected: {expected}; got: the second run's"
    message = EXPLANATIONS[Reason.nondeterministic]
    if not gpu and not any(call.run.launches for call in calls):
        message = (
            "The same inputs gave different results when run twice, and no kernel was launched: look for random "
            "numbers in forward, and for values that it keeps from one call to the next."
        )
    return [Finding(Reason.nondeterministic, message, evidence)]


def _list_writes(calls: list[Call], session: Session) -> list[Evidence]:
    """Return where kernels of the first call wrote to inputs first, as far as simt's runtime has seen it."""
    written, strings = calls[0].run.written, session.client.sources
    found = (facts.describe_write(write, written, session.source, strings) for write in calls[0].writes.values())
    return [one for one in found if one.kernel]


def _describe_writes(writes: list[Evidence]) -> str:
    """Return a sentence on the first of the writes; empty if there is none."""
    one = writes[0] if writes else Evidence()
    if one.thread is None or one.block is None:
        return ""
    where = f" in line {one.line}" if one.line else ""
    thread, block = tuple(one.thread), tuple(one.block)
    return f" Kernel `{one.kernel}` writes to it{where}, first in thread {thread} of block {block}."


def _model_aliases(trial: Trial) -> bool:
    """Return whether the problem's own Model returns an input or a view of one, so that a submission may."""
    inputs = copy_values(trial.instance.inputs)
    with trial.instance.blame(), torch.no_grad():
        outputs = flatten(trial.instance.build()(*inputs))
    return any(overlap(out, value) for out in outputs for value in inputs)


def _list_inputs(trial: Trial, numbers: list[int]) -> str:
    """Return "its input `x`", or "its inputs `x` and `input 2`" where Model does not name the third one."""
    names = trial.instance.names()
    quoted = [f"`{names[n] if n < len(names) else f'input {n}'}`" for n in numbers]
    if len(quoted) == 1:
        return f"its input {quoted[0]}"
    return f"its inputs {', '.join(quoted[:-1])} and {quoted[-1]}"
