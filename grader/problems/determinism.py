"""Do arguments, weights and inputs settle what a Model returns? A submission is given no more than these."""

from __future__ import annotations

import dataclasses

import torch

from grader.problems import settled
from grader.problems.cases import Case, ProblemError
from grader.problems.draws import seeded
from grader.problems.instance import Instance
from grader.problems.problem import Problem
from grader.problems.values import copy_values, differ, exact_float32, find_tensors, flatten

DRAWS = "Model itself is random: called twice with the same inputs and weights it gives other results (dropout, say)"
OTHER_SEED = 1 << 20  # moves a seed to where no other seed of the judge's is
ENOUGH_ELEMENTS = 100  # of all inputs together


def check_determined(problem: Problem, cases: list[Case], device: str | torch.device = "cpu") -> None:
    """Raise ProblemError, which says what helps, if arguments, weights and inputs do not settle what Model returns.

    A submission is given no more than these, and is called more than once. One small case is looked at.
    """
    if str(device) in problem.determined:
        return
    if str(device) == "cpu":
        settled.once(problem.text, problem.overrides, "determined", lambda: _check_on(problem, cases, device))
    else:  # by the GPU, too
        _check_on(problem, cases, device)
    problem.determined.add(str(device))


def _check_on(problem: Problem, cases: list[Case], device: str | torch.device) -> None:
    case = _pick_case(problem, cases)
    instance = problem.instantiate(case, 0, device)
    if not isinstance(instance.model, torch.nn.Module):
        return
    why = _find_uncertainty(instance)
    if why == DRAWS:
        why += _advise_on_dropout(problem, case, device)
    if why:
        raise ProblemError(why, problem.path)


def _pick_case(problem: Problem, cases: list[Case]) -> Case:
    """Return the first case with enough inputs for chance to show, or the last.

    With one feature, softmax is 1 whatever is dropped.
    """
    for case in cases:
        inputs = problem.instantiate(case, 0).inputs
        if sum(t.numel() for t in find_tensors(inputs)) >= ENOUGH_ELEMENTS:
            return case
    return cases[-1]


def _advise_on_dropout(problem: Problem, case: Case, device: str | torch.device) -> str:
    """Return the advice to --set the rates of dropout to 0, if the file names them and that is enough."""
    rates = {
        name: 0.0
        for name, value in problem.literals.items()
        if "drop" in name.lower() and type(value) in (int, float) and value
    }
    try:
        without = dataclasses.replace(problem, overrides=problem.overrides | rates)
        enough = bool(rates) and not _find_uncertainty(without.instantiate(case, 0, device))
    except ProblemError:
        enough = False
    if not enough:
        return "; take out of the file what Model draws."
    return f"; {' '.join(f'--set {name}=0.0' for name in rates)} makes it certain."


def _find_uncertainty(instance: Instance) -> str:
    """Return how the result depends on more than arguments, weights and inputs, as a sentence; empty if it does not."""
    model, other = instance.build(), instance.build(other=OTHER_SEED)
    try:
        other.load_state_dict(model.state_dict())
    except Exception:  # a Model whose own weights cannot be loaded: nothing is known
        other = instance.build()
    drawn, before = _find_differing(_copy_state(model), _copy_state(other)), _copy_state(model)
    first, drew = _run_once(instance, model, 0)
    seeds = range(1, 9) if drew else (1,)
    if any(differ(first, _run_once(instance, instance.build(), seed)[0]) for seed in seeds):
        return DRAWS
    if differ(first, _run_once(instance, other, 0)[0]):
        what = " and ".join(f"`{name}`" for name in drawn) or "something"
        buffers = ", ".join(f"self.register_buffer('{name.rpartition('.')[2]}', ...)" for name in drawn)
        return (
            f"Model itself is random: __init__ draws {what}, and a submission is given parameters and buffers alone; "
            f"make a buffer of it in the file{': ' if buffers else ''}{buffers}."
        )
    changed = _find_differing(before, _copy_state(model))
    if differ(first, _run_once(instance, model, 0)[0]):
        what = " and ".join(f"`{name}`" for name in changed) or "something"
        return (
            f"Model keeps {what} from one call to the next: called again with the same inputs it gives other results, "
            "so that none is right; have forward keep nothing in self."
        )
    return ""


def _run_once(instance: Instance, model: torch.nn.Module, seed: int) -> tuple[list[torch.Tensor], bool]:
    """Return the outputs with this seed, and whether random numbers were drawn on the way."""
    gpus = [t.device for t in find_tensors(instance.inputs) if t.is_cuda]
    with instance.blame(), torch.no_grad(), exact_float32(), seeded(seed, None):
        state = torch.cuda.get_rng_state(gpus[0]) if gpus else torch.get_rng_state()
        outputs = [out.clone() for out in flatten(model(*copy_values(instance.inputs)))]
        return outputs, not torch.equal(state, torch.cuda.get_rng_state(gpus[0]) if gpus else torch.get_rng_state())


def _copy_state(model: torch.nn.Module) -> dict[str, object]:
    """Return copies of the tensors and numbers that a model and its parts hold besides parameters, by their names."""
    held: dict[str, object] = {}
    for path, part in model.named_modules():
        for name, value in [*vars(part).items(), *part.named_buffers(recurse=False)]:
            if isinstance(value, (torch.Tensor, int, float)):
                held[f"{path}.{name}".lstrip(".")] = (
                    value.detach().clone() if isinstance(value, torch.Tensor) else value
                )
    return held


def _find_differing(a: dict[str, object], b: dict[str, object]) -> list[str]:
    """Return the names that stand for different values."""
    return [
        name
        for name in a
        if name in b and differ(find_tensors(torch.as_tensor(a[name])), find_tensors(torch.as_tensor(b[name])))
    ]
