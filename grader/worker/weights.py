"""Which of ModelNew's weights takes which of Model's: the same name, else the same shape, in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from grader.worker.failures import shorten
from grader.worker.messages import MAX_RENAMED

MAX_MISFITS = 2000  # characters of the sentence


def match_weights(
    state: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], parameters: Collection[str] = ()
) -> tuple[dict[str, str], str]:
    """Return {name in Model: name in ModelNew}, and a sentence that names weights of Model without a counterpart.

    state, own: the state_dict of Model and of ModelNew. parameters: names in ModelNew that are not buffers. A weight of
    the same name and shape is taken first. The others are paired by shape, in the order of the two dicts, where both
    have as many of that shape, or ModelNew has as many parameters: anything else would be a guess. Weights that only
    ModelNew has keep what its constructor gave them.
    """
    pairs = {name: name for name in state if name in own and state[name].shape == own[name].shape}
    wanted, free = _by_shape(state, pairs.keys()), _by_shape(own, pairs.values())
    misfits: list[str] = []
    for shape, names in wanted.items():
        candidates = free.get(shape, [])
        without_buffers = [name for name in candidates if name in parameters]
        if len(names) == len(without_buffers):
            candidates = without_buffers
        if len(names) == len(candidates):
            pairs |= zip(names, candidates)
        else:
            misfits += _describe(names, candidates, state, own)
    return pairs, shorten("; ".join(misfits), MAX_MISFITS)


def load_weights(model: Any, state: Mapping[str, torch.Tensor]) -> tuple[dict[str, str], str]:
    """Copy Model's weights into a ModelNew; return what match_weights returns. Copies nothing if one does not fit."""
    is_module = isinstance(model, torch.nn.Module)
    own = model.state_dict() if is_module else {}
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)} if is_module else ()
    pairs, misfits = match_weights(state, own, parameters)
    if state and not misfits:
        model.load_state_dict({pairs[name]: value for name, value in state.items()}, strict=False)
    return pairs, misfits


def list_renamed(pairs: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the pairs whose names differ, as they are sent: the first ones, with long names shortened."""
    renamed = [(shorten(name, 200), shorten(own, 200)) for name, own in pairs.items() if name != own]
    return renamed[:MAX_RENAMED]


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
