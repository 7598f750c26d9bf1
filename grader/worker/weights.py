"""Which of ModelNew's weights takes which of Model's: the same name, else the same shape, in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from grader.worker.failures import shorten
from grader.worker.messages import MAX_MISSING, MAX_RENAMED

MAX_MISFITS = 2000  # characters of the sentence
MAX_NAME = 200  # characters of a weight's name, as it is sent


@dataclasses.dataclass
class Match:
    """How Model's weights were matched.

    pairs: name in Model to name in ModelNew. misfits: a sentence that names weights without a counterpart; empty if
    there is none. missing: Model's buffers without a counterpart, which a ModelNew need not have.
    """

    pairs: dict[str, str]
    misfits: str = ""
    missing: list[str] = dataclasses.field(default_factory=list)

    def list_renamed(self) -> list[tuple[str, str]]:
        """Return the pairs whose names differ, as they are sent: the first ones, with long names shortened."""
        renamed = [(shorten(name, MAX_NAME), shorten(own, MAX_NAME)) for name, own in self.pairs.items() if name != own]
        return renamed[:MAX_RENAMED]

    def list_missing(self) -> list[str]:
        """Return the missing buffers as they are sent: the first ones, with long names shortened."""
        return [shorten(name, MAX_NAME) for name in self.missing[:MAX_MISSING]]


def match_weights(
    state: Mapping[str, torch.Tensor],
    own: Mapping[str, torch.Tensor],
    parameters: Collection[str] = (),
    buffers: Collection[str] = (),
    hidden: Mapping[str, torch.Tensor] | None = None,
) -> Match:
    """Match the weights of Model with those of ModelNew.

    state, own: the state_dict of Model and of ModelNew. parameters: names in `own` that are not buffers. buffers: names
    in `state` that are. hidden: ModelNew's buffers that are not in its state_dict (persistent=False), which take
    weights of their own name alone. A weight of the same name and shape is taken first. The others are paired by shape,
    in the order of the two dicts, where both have as many of that shape: parameters with parameters and buffers with
    buffers, or all of them with ModelNew's parameters, or with its parameters and buffers. If that fails, Model's
    parameters alone are paired with ModelNew's (with its buffers where it has no parameter of that shape), and Model's
    buffers are missing. Anything else would be a guess. Weights that only ModelNew
    has keep what its constructor gave them.
    """
    named = {**(hidden or {}), **own}
    match = Match({name: name for name in state if name in named and state[name].shape == named[name].shape})
    wanted, free = _by_shape(state, match.pairs.keys()), _by_shape(own, match.pairs.values())
    misfits: list[str] = []
    for shape, names in wanted.items():
        candidates = free.get(shape, [])
        pairs = _pair(names, candidates, parameters, buffers)
        if pairs is None:
            misfits += _describe([name for name in names if name not in buffers], candidates, state, own)
        else:
            match.pairs |= pairs
    match.misfits = shorten("; ".join(misfits), MAX_MISFITS)
    match.missing = [name for name in state if name in buffers and name not in match.pairs]
    return match


def _pair(
    names: list[str], candidates: list[str], parameters: Collection[str], buffers: Collection[str]
) -> dict[str, str] | None:
    """Return pairs of weights of one shape, at least for all of Model's parameters; None if it would be a guess."""
    needed, optional = _split(names, lambda name: name not in buffers)
    own, extra = _split(candidates, lambda name: name in parameters)
    if (len(needed), len(optional)) == (len(own), len(extra)):
        return dict(zip(needed + optional, own + extra))
    for wanted, given in ((names, own), (names, candidates), (needed, own or extra)):
        if len(wanted) == len(given):
            return dict(zip(wanted, given))
    return None if needed else {}


def _split(names: list[str], is_first: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    return [name for name in names if is_first(name)], [name for name in names if not is_first(name)]


def list_buffers(model: object) -> list[str]:
    """Return the names of a model's buffers."""
    if not isinstance(model, torch.nn.Module):
        return []
    return [name for name, _ in model.named_buffers(remove_duplicate=False)]


def load_weights(model: Any, state: Mapping[str, torch.Tensor], buffers: Collection[str] = ()) -> Match:
    """Copy Model's weights into a ModelNew; return what match_weights returns. Copies nothing if one does not fit."""
    is_module = isinstance(model, torch.nn.Module)
    own = model.state_dict() if is_module else {}
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)} if is_module else ()
    held = dict(model.named_buffers(remove_duplicate=False)) if is_module else {}
    hidden = {name: value for name, value in held.items() if name not in own}
    match = match_weights(state, own, parameters, buffers, hidden)
    if match.pairs and not match.misfits:
        model.load_state_dict({match.pairs[name]: state[name] for name in match.pairs}, strict=False)
        with torch.no_grad():
            for name in match.pairs.keys() & hidden.keys():
                hidden[name].copy_(state[name])
    return match


def _by_shape(weights: Mapping[str, torch.Tensor], taken: Any) -> dict[torch.Size, list[str]]:
    """Return the names that are not taken, by shape, in order."""
    found: dict[torch.Size, list[str]] = {}
    for name, value in weights.items():
        if name not in taken:
            found.setdefault(value.shape, []).append(name)
    return found


def _describe(
    names: list[str], candidates: list[str], state: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]
) -> list[str]:
    """Return why these weights of Model, all of one shape, have no counterpart among the candidates of that shape."""
    shape = tuple(state[names[0]].shape)
    if candidates:
        few = "only " if len(candidates) < len(names) else ""
        return [f"of shape {shape}, Model has {_list(names)} and ModelNew has {few}{_list(candidates)}"]
    moved = [name for name in names if name in own]
    found = [f"{name} is {shape} in Model and {tuple(own[name].shape)} in ModelNew" for name in moved]
    missing = [name for name in names if name not in own]
    return found + ([f"ModelNew has no {', '.join(missing)}, of shape {shape}"] if missing else [])


def _list(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 6 else f"{len(names)} weights"
