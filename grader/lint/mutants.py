"""Run mutants of a problem's Model: copies of its code with one expression changed, on the same weights and inputs."""

from __future__ import annotations

import ast
import dataclasses

import torch

from grader.judging.trial import Trial
from grader.lint.attempt import MUTANT, Attempt, Label
from grader.lint.mutations import Mutation, list_mutations
from grader.problems.cases import ProblemError
from grader.problems.draws import seeded
from grader.problems.instance import Instance
from grader.problems.problem import Problem
from grader.worker.weights import load_weights

MOST_MUTANTS = 400  # of one file: a larger one is sampled at equal distances


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A changed copy of the problem, and its label."""

    label: Label
    problem: Problem

    def attempt(self, trial: Trial) -> Attempt:
        """Return this mutant's computation of a case. Raises ProblemError where the changed file does not run."""
        instance = _make_instance(self.problem, trial)
        return Attempt(self.label, instance.eager, instance)


def make_mutants(problem: Problem) -> tuple[list[Mutant], int]:
    """Return mutants of Model and of what it uses of the file, and how many there are without the limit."""
    names = frozenset(problem.read_by_model | {"Model"})
    found = list_mutations(problem.tree, names)
    kept = found if len(found) <= MOST_MUTANTS else found[:: -(-len(found) // MOST_MUTANTS)]
    return [Mutant(_label(one), dataclasses.replace(problem, tree=_apply(one, problem.tree))) for one in kept], len(
        found
    )


def _apply(mutation: Mutation, tree: ast.Module) -> ast.Module:
    return ast.fix_missing_locations(mutation.apply(tree))


def _label(mutation: Mutation) -> Label:
    before, after = mutation.before, mutation.after
    return Label(MUTANT, mutation.group, f"{before} → {after}", mutation.node.lineno, before, after)


def _make_instance(problem: Problem, trial: Trial) -> Instance:
    """Return the trial's inputs with the mutant's Model, which gets the weights as a submission does."""
    right = trial.instance
    module = problem.module(dict(trial.case.set))
    state = right.model.state_dict() if isinstance(right.model, torch.nn.Module) else {}
    device = _find_device(right)

    def build(other: int = 0) -> torch.nn.Module:
        with right.blame(), seeded(other, device), device:
            model = module.Model(*right.init_args, **right.init_kwargs)
            if isinstance(model, torch.nn.Module):
                model = model.to(device)
            match = load_weights(model, state)
        if match.misfits:
            raise ProblemError(f"the weights do not fit: {match.misfits}", problem.path)
        return model

    return dataclasses.replace(right, build=build)


def _find_device(instance: Instance) -> torch.device:
    tensors = [value for value in instance.inputs if isinstance(value, torch.Tensor)]
    return tensors[0].device if tensors else torch.device("cpu")
