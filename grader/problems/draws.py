"""Random weights and inputs: the same for the same seed and case, with the process's own random state untouched."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import random
from collections.abc import Iterator

import torch

from grader.problems.cases import Case
from grader.problems.values import is_floating
from grader.worker.layout import change_values


def derive_seed(seed: int, case: Case) -> int:
    """Return a 62-bit seed for torch from the judge's seed and the case."""
    text = repr((seed, case.name, sorted(case.set.items()), case.inputs))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 2


def derive_weight_seed(seed: int, case: Case) -> int:
    """Return a seed for weights that tells nothing of derive_seed()'s, from which inputs are drawn."""
    return derive_seed(seed, dataclasses.replace(case, name=f"weights of {case.name}"))


@contextlib.contextmanager
def seeded(seed: int, device: torch.device | None) -> Iterator[None]:
    """Start Python's and torch's random numbers at `seed` inside; restore them afterwards."""
    state = random.getstate()
    if device is None:
        devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    else:
        devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        if torch.cuda.is_available():
            torch.manual_seed(seed)
        else:  # torch.manual_seed formats a traceback for each kind of device that is not there: half a millisecond
            torch.default_generator.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


def find_constants(model: torch.nn.Module, other: torch.nn.Module) -> list[str]:
    """Return the names of the parameters that are the same in a model constructed with another seed."""
    if not isinstance(model, torch.nn.Module):
        return []
    pairs = zip(model.named_parameters(), other.parameters(), strict=True)
    return [name for (name, one), two in pairs if not one.is_meta and torch.equal(one, two)]


def randomise_parameters(model: torch.nn.Module, names: list[str] | None = None) -> None:
    """Add normal noise to the parameters of these names, or to every one: 0.2, or less where many products are summed:
    deep models stay finite.

    Parameters without values are left alone: for normal numbers on the meta device torch imports its compiler, which
    takes time.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if (names is not None and name not in names) or parameter.is_meta or not is_floating(parameter):
                continue
            fan_in = parameter[0].numel() if parameter.dim() > 1 else 1
            parameter.add_(torch.randn_like(parameter), alpha=min(0.2, fan_in**-0.5))


def redraw_input(value: object, inputs: str, device: torch.device) -> object:
    """Return an input on the device with its strides, its floating values redrawn unless inputs is 'file'.

    A tensor that repeats its elements, as expand() makes one, still repeats them.
    """
    if not isinstance(value, torch.Tensor):
        return value
    value = change_values(value.detach(), lambda values: values.to(device))
    if inputs == "file" or not is_floating(value):
        return value
    return change_values(value, functools.partial(_draw_like, inputs=inputs))


def _draw_like(value: torch.Tensor, inputs: str) -> torch.Tensor:
    if inputs == "uniform":
        return torch.rand_like(value)
    if inputs == "zeros":
        return torch.zeros_like(value)
    scale, shift = {"normal": (1, 0), "large_mean": (1, 1000), "large": (100, 0), "tiny": (1e-3, 0)}[inputs]
    return torch.randn_like(value) * scale + shift
