"""What a submission may have misunderstood about its weights and inputs, where its values are wrong."""

from __future__ import annotations

import contextlib

import torch

from grader.judging.context import Context
from grader.judging.trial import Trial
from grader.problems.cases import ProblemError
from grader.verdict import Stage

TRAINING = {  # what layers do in training alone
    (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm): (
        "BatchNorm takes mean and variance from the batch"
    ),
    (torch.nn.Dropout, torch.nn.Dropout1d, torch.nn.Dropout2d, torch.nn.Dropout3d): "Dropout drops values",
}
COUNTER = "num_batches_tracked"  # of torch's BatchNorm layers: no output depends on it


def describe_possible_causes(context: Context, stage: Stage) -> str:
    """Return a sentence for each, with a space before it, or an empty string. stage: "correct", which has failed."""
    session, trial = context.session, _find_trial(context, stage)
    if evaluated := _describe_evaluation(trial):
        return evaluated
    return _describe_renamed(session.renamed) + _describe_missing(session.missing) + _describe_strides(trial)


def _find_trial(context: Context, stage: Stage) -> Trial | None:
    """Return the trial of the case that the stage reports."""
    case = stage.evidence[0].case if stage.evidence else None
    return next((trial for trial in context.trials if trial.case.name == case), None)


def _describe_evaluation(trial: Trial | None) -> str:
    """Return a sentence where the outputs are those of Model after model.eval(), or an empty string."""
    if trial is None:
        return ""
    modules = list(trial.instance.model.modules())
    found = [what for kinds, what in TRAINING.items() if any(isinstance(one, kinds) for one in modules)]
    if not found:
        return ""
    with contextlib.suppress(ProblemError):
        if _are_close(trial.first_outputs, trial.instance.evaluated()):
            return (
                " These are the values of Model after model.eval(). KernelBench and the grader do not call eval(), so "
                f"{' and '.join(found)}. Compute the same."
            )
    return ""


def _are_close(got: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Return whether the outputs are the same but for rounding."""
    if not got or len(got) != len(others):
        return False
    pairs = zip(got, others)
    return all(a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-4) for a, b in pairs)


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


def _describe_strides(trial: Trial | None) -> str:
    """Return a sentence about inputs of the failing case that are not contiguous, or an empty string."""
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
