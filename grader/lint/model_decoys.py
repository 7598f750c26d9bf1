"""Make decoys that compute a case with a wrong model or wrong inputs: other weights, fewer bits, an input not read."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator

import torch

from grader.judging.trial import Trial
from grader.lint.attempt import DECOY, Attempt, Label
from grader.lint.overflow import WithoutMaximum
from grader.problems.cases import ProblemError
from grader.problems.draws import seeded
from grader.problems.instance import Instance
from grader.problems.problem import Problem
from grader.problems.values import copy_values, is_floating
from grader.worker.exchange import same_bits

OTHER_SEED = 1 << 21  # moves a seed to where no other seed of the judge's is
MOST_WEIGHTS = 24  # parameters and buffers that are spoiled one at a time: the first ones of a deep model
HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
Edit = Callable[[torch.Tensor], torch.Tensor]


def make_model_decoys(problem: Problem, trial: Trial) -> Iterator[Attempt]:
    """Return the decoys that run the problem's own Model on wrong weights, wrong inputs, or in fewer bits."""
    yield from _make_precision_decoys(trial)
    label = Label(DECOY, "overflow", "exp without subtracting the maximum")
    yield Attempt(label, functools.partial(_compute_without_maximum, trial))
    yield from _make_weight_decoys(problem, trial)
    yield from _make_input_decoys(trial)


def replace_state(instance: Instance, edit: Callable[[dict[str, torch.Tensor]], None]) -> Instance:
    """Return the instance with its model's weights edited: edit changes a dict of references to them in place."""

    def build(other: int = 0) -> torch.nn.Module:
        model = instance.build(other)
        with torch.no_grad():
            edit(get_state(model))
        return model

    return dataclasses.replace(instance, build=build)


def get_state(model: object) -> dict[str, torch.Tensor]:
    """Return the floating parameters and buffers of a model that a submission is handed, by name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name: value for name, value in model.state_dict().items() if is_floating(value)}


def _compute_without_maximum(trial: Trial) -> list[torch.Tensor] | None:
    """Return what Model gives with softmax and logsumexp written out plainly; None if it calls neither."""
    with WithoutMaximum() as mode:
        made = trial.instance.eager()
    return made if mode.used else None


# --- precision -------------------------------------------------------------------------------------------------------


def _make_precision_decoys(trial: Trial) -> Iterator[Attempt]:
    instance = trial.instance
    if not any(out.dtype in (torch.float32, torch.float64) for out in trial.eager):
        return
    for name, dtype in HALVES.items():
        rounded = _round_all(instance, dtype)
        yield _make_coarse(trial, f"inputs and weights rounded to {name}", rounded.eager)
        yield _make_coarse(trial, f"computed in {name}", functools.partial(_compute_in, trial, dtype))
        yield _make_coarse(trial, f"outputs rounded to {name}", functools.partial(_round_outputs, trial, dtype))
    if instance.precision != "tf32":
        yield _make_coarse(
            trial, "the factors of products rounded to TF32", dataclasses.replace(instance, precision="tf32").eager
        )


def _make_coarse(trial: Trial, name: str, compute: Callable[[], list[torch.Tensor]]) -> Attempt:
    """Return the attempt; it does not count in a case in which fewer bits give the same bits."""

    def run() -> list[torch.Tensor] | None:
        try:
            made = compute()
        except ProblemError:  # torch has no such operator in half precision
            return None
        made = [a.to(b.dtype) if b.is_floating_point() else b for a, b in zip(made, trial.eager)]
        return None if all(map(same_bits, made, trial.eager)) else made

    return Attempt(Label(DECOY, "precision", name), run)


def _round(value: object, dtype: torch.dtype) -> object:
    return value.to(dtype).to(value.dtype) if isinstance(value, torch.Tensor) and is_floating(value) else value


def _round_all(instance: Instance, dtype: torch.dtype) -> Instance:
    def edit(state: dict[str, torch.Tensor]) -> None:
        for value in state.values():
            value.copy_(value.to(dtype))

    inputs = [_round(value, dtype) for value in instance.inputs]
    return dataclasses.replace(replace_state(instance, edit), inputs=inputs)


def _compute_in(trial: Trial, dtype: torch.dtype) -> list[torch.Tensor]:
    instance = trial.instance
    inputs = [value.to(dtype) if is_floating(value) else value for value in copy_values(instance.inputs)]
    inner = dataclasses.replace(instance, inputs=inputs, build=lambda other=0: instance.build(other).to(dtype))
    with _default_dtype(dtype):
        return inner.eager()


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _round_outputs(trial: Trial, dtype: torch.dtype) -> list[torch.Tensor]:
    return [out.to(dtype).to(out.dtype) if out.is_floating_point() else out for out in trial.eager]


# --- weights ---------------------------------------------------------------------------------------------------------


def _make_weight_decoys(problem: Problem, trial: Trial) -> Iterator[Attempt]:
    instance = trial.instance
    state = get_state(instance.model)
    if not state:
        return
    fresh = dataclasses.replace(instance, build=lambda other=0: instance.build(OTHER_SEED))
    yield _attempt("weights", "other random weights", fresh)
    initial = _find_initial_constants(problem, trial)
    for name in list(state)[:MOST_WEIGHTS]:
        yield _attempt("weights", f"`{name}` forgotten (0)", _edit_weight(instance, name, torch.zeros_like))
        yield _attempt("weights", f"`{name}` forgotten (1)", _edit_weight(instance, name, torch.ones_like))
        if initial.get(name, 0.0) not in (0.0, 1.0):
            fill = functools.partial(torch.full_like, fill_value=initial[name])
            yield _attempt("weights", f"`{name}` left at its initial value", _edit_weight(instance, name, fill))
        if state[name].numel() > 1:
            first = _edit_weight(instance, name, _spread_first)
            yield _attempt("weights", f"the first value of `{name}` used everywhere", first)


def _attempt(group: str, name: str, instance: Instance) -> Attempt:
    return Attempt(Label(DECOY, group, name), instance.eager, instance)


def _edit_weight(instance: Instance, name: str, edit: Edit) -> Instance:
    def edit_state(state: dict[str, torch.Tensor]) -> None:
        if name in state:
            state[name].copy_(edit(state[name]))

    return replace_state(instance, edit_state)


def _spread_first(value: torch.Tensor) -> torch.Tensor:
    return value.flatten()[0].expand_as(value)


def _find_initial_constants(problem: Problem, trial: Trial) -> dict[str, float]:
    """Return the value of each weight that Model's constructor fills with a single one."""
    try:
        with trial.instance.blame(), seeded(0, None):
            module = problem.module(dict(trial.case.set))
            state = get_state(module.Model(*trial.instance.init_args, **trial.instance.init_kwargs))
    except ProblemError:
        return {}
    return {
        name: float(value.flatten()[0])
        for name, value in state.items()
        if value.numel() and bool((value == value.flatten()[0]).all())
    }


# --- inputs ----------------------------------------------------------------------------------------------------------


def _make_input_decoys(trial: Trial) -> Iterator[Attempt]:
    names = trial.instance.names()
    for number, value in enumerate(trial.instance.inputs):
        if not isinstance(value, torch.Tensor) or not value.numel():
            continue
        name = names[number]
        # Without its instance, so that it counts in any case: an input on which nothing depends is worth a report.
        label = Label(DECOY, "input read wrongly", f"zeros read in place of `{name}`")
        yield Attempt(label, _edit_input(trial, number, _zeros).eager)
        long = [d for d in range(value.dim()) if value.shape[d] > 1]
        for d in long:
            first = _edit_input(trial, number, functools.partial(_spread_index, d))
            yield _attempt("input read wrongly", f"index 0 of dimension {d} of `{name}` read everywhere", first)
        if value.dim() > 1 and min(value.shape[-2:]) > 1:
            transposed = _edit_input(trial, number, _transpose)
            yield _attempt("input read wrongly", f"`{name}` read transposed", transposed)


def _edit_input(trial: Trial, number: int, edit: Edit) -> Instance:
    inputs = list(trial.instance.inputs)
    inputs[number] = edit(inputs[number])
    return dataclasses.replace(trial.instance, inputs=inputs)


def _zeros(value: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(value)


def _spread_index(dimension: int, value: torch.Tensor) -> torch.Tensor:
    return value.narrow(dimension, 0, 1).expand_as(value).contiguous()


def _transpose(value: torch.Tensor) -> torch.Tensor:
    """Store the transposed values in the memory of the same shape, as exchanged strides read them."""
    return value.transpose(-1, -2).reshape(value.shape)
