"""Make variants of a problem's cases: other values, other distributions, other settings.

They show whether a surviving attempt is wrong at all, and what a case must look like to reject it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch

from grader.judging.trial import Trial, prepare_trial
from grader.lint.model_decoys import replace_state
from grader.problems.cases import DISTRIBUTIONS, Case, ProblemError, check_cost, has_comparable_output
from grader.problems.instance import Instance
from grader.problems.problem import Problem
from grader.problems.values import is_floating

MOST_BASES = 5  # cases that are varied
MOST_SETTINGS = 60  # variants of sizes and other literals of one case
FRESH_SEEDS = 3
OTHER_DRAW = 1 << 22  # moves a seed to where no other seed of the judge's is
Edit = Callable[[torch.Tensor], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """A case that rejects a survivor. what: a few words. entry: the line for CASES, None if values must change."""

    what: str
    entry: dict[str, object] | None = None


def make_variants(problem: Problem, trials: list[Trial], seed: int) -> Iterator[tuple[Suggestion, Trial]]:
    """Return variants of some cases that Model accepts, the simplest first, with what distinguishes each."""
    bases = _pick_bases(trials)
    device = _find_device(trials[0])
    for suggestion, make in _list_makers(problem, bases, seed, device):
        try:
            case, instance = make()
            if instance is None:
                continue
            trial = prepare_trial(case, instance)
        except ProblemError:
            continue
        if has_comparable_output(trial.eager):
            yield suggestion, trial


def _pick_bases(trials: list[Trial]) -> list[Trial]:
    """Return some cases, those with many outputs first: they show more than a case of one element."""
    ordered = sorted(trials, key=lambda trial: -sum(out.numel() for out in trial.eager))
    return ordered[:: max(1, len(ordered) // MOST_BASES)][:MOST_BASES]


def _find_device(trial: Trial) -> str:
    return next((str(value.device) for value in trial.instance.inputs if isinstance(value, torch.Tensor)), "cpu")


Maker = Callable[[], tuple[Case, Instance | None]]


def _list_makers(problem: Problem, bases: list[Trial], seed: int, device: str) -> Iterator[tuple[Suggestion, Maker]]:
    for base in bases:
        for inputs in DISTRIBUTIONS:
            if inputs not in ("file", "zeros", base.case.inputs):
                case = dataclasses.replace(base.case, inputs=inputs)
                yield _suggest(f"{inputs.replace('_', ' ')} inputs", case), _instantiate(problem, case, seed, device)
    for what, edit in (("negative values", _negate), ("values that differ in size along each dimension", _slope)):
        for base in bases:
            yield Suggestion(f"inputs with {what}"), _edit_inputs(base, edit)
    for base in bases:
        yield Suggestion("buffers whose values are neither 0, nor 1, nor all equal"), _edit_buffers(base)
    for base in bases:
        for case, name, value in _vary_settings(problem, base.case):
            yield _suggest(f"{name}={value!r}", case), _instantiate_if_small(problem, case, seed, device)
    for base in bases:
        for number in range(1, FRESH_SEEDS + 1):
            other = _instantiate(problem, base.case, seed + number * OTHER_DRAW, device)
            yield Suggestion(f"the case '{base.case.name}' with other random numbers: it depends on the seed"), other


def _suggest(what: str, case: Case) -> Suggestion:
    return Suggestion(what, {"name": what, "set": dict(case.set), "inputs": case.inputs})


def _instantiate(problem: Problem, case: Case, seed: int, device: str) -> Maker:
    def make() -> tuple[Case, Instance]:
        instance = problem.instantiate(case, seed, device)
        # The declared reduction may be that of other sizes.
        return dataclasses.replace(case, reduction=max(case.reduction or 0, instance.reduction())), instance

    return make


def _instantiate_if_small(problem: Problem, case: Case, seed: int, device: str) -> Maker:
    def make() -> tuple[Case, Instance | None]:
        check_cost(problem, case)
        return _instantiate(problem, case, seed, device)()

    return make


def _edit_inputs(base: Trial, edit: Edit) -> Maker:
    def make() -> tuple[Case, Instance]:
        inputs = [edit(value) if is_floating(value) else value for value in base.instance.inputs]
        return base.case, dataclasses.replace(base.instance, inputs=inputs)

    return make


def _negate(value: torch.Tensor) -> torch.Tensor:
    return -value.abs()


def _slope(value: torch.Tensor) -> torch.Tensor:
    """Return the values times 1 to 2 along each dimension, so that no two rows or columns are alike."""
    for d in range(value.dim()):
        ramp = torch.linspace(1, 2, value.shape[d], dtype=value.dtype, device=value.device)
        value = value * ramp.view(-1, *[1] * (value.dim() - 1 - d))
    return value


def _edit_buffers(base: Trial) -> Maker:
    """Add 0.5 to 1.5 to every floating buffer: positive, as variances are."""
    model = base.instance.model
    names = (
        [] if not isinstance(model, torch.nn.Module) else [name for name, b in model.named_buffers() if is_floating(b)]
    )

    def edit(state: dict[str, torch.Tensor]) -> None:
        for number, name in enumerate(name for name in names if name in state):
            generator = torch.Generator().manual_seed(number)
            noise = torch.rand(state[name].shape, generator=generator).to(state[name])
            state[name].add_(noise + 0.5)

    def make() -> tuple[Case, Instance | None]:
        if not names:
            return base.case, None
        instance = replace_state(base.instance, edit)
        return base.case, dataclasses.replace(instance, model=instance.build())

    return make


def _vary_settings(problem: Problem, case: Case) -> Iterator[tuple[Case, str, object]]:
    """Return the case with one module-level literal changed at a time: odd sizes, a constant of the other sign, ..."""
    values, made = problem.literals | case.set, 0
    for name, value in values.items():
        for other in _vary(value):
            if name in problem.overrides or made == MOST_SETTINGS:
                continue
            made += 1
            yield dataclasses.replace(case, set={**case.set, name: other}), name, other


def _vary(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value + 1, *([] if value <= 1 else [1]), 64 * value + 1]
    if isinstance(value, float):
        return [2 * value + 0.7, -value - 0.3]
    return []
