"""What a submission may have misunderstood about its weights and inputs, where its values are wrong."""

from __future__ import annotations

import torch

from grader.judging.context import Context
from grader.verdict import Stage

COUNTER = "num_batches_tracked"  # of torch's BatchNorm layers: no output depends on it


def describe_possible_causes(context: Context, stage: Stage) -> str:
    """Return a sentence for each, with a space before it, or an empty string. stage: "correct", which has failed."""
    session = context.session
    return _describe_renamed(session.renamed) + _describe_missing(session.missing) + _describe_strides(context, stage)


def _describe_missing(missing: list[str]) -> str:
    """Return a sentence about buffers that ModelNew lacks, or an empty string."""
    missing = [name for name in missing if name.rpartition(".")[2] != COUNTER]
    if not missing:
        return ""
    shown = ", ".join(name[:80] for name in missing[:4])
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return (
        f" ModelNew has no buffer for these of Model: {shown}{more}. If the result depends on their values, register "
        "buffers with these names and shapes, and the grader fills them."
    )


def _describe_strides(context: Context, stage: Stage) -> str:
    """Return a sentence about inputs of the failing case that are not contiguous, or an empty string."""
    case = stage.evidence[0].case if stage.evidence else None
    trial = next((trial for trial in context.trials if trial.case.name == case), None)
    if trial is None:
        return ""
    named = zip(trial.instance.names(), trial.instance.inputs)
    found = [
        f"`{name}` has the strides {tuple(value.stride())}"
        for name, value in named
        if isinstance(value, torch.Tensor) and not value.is_contiguous()
    ]
    if not found:
        return ""
    return f" Not every input is contiguous: {', '.join(found)}. Use its strides, or call .contiguous() first."


def _describe_renamed(renamed: list[tuple[str, str]]) -> str:
    """Return a sentence about weights that were matched by their order, or an empty string."""
    if not renamed:
        return ""
    shown = ", ".join(f"{name[:80]} to {own[:80]}" for name, own in renamed[:4])
    more = f" and {len(renamed) - 4} more" if len(renamed) > 4 else ""
    return (
        f" Where names differ, the grader matches weights by shape, in order: {shown}{more}. If that is not what you "
        "mean, use Model's names or write a method load_reference(model)."
    )
