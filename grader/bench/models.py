"""A row's model, ready to be called with the problem's weights, and how far its answer is from float64's."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from grader import problem as _problem
from grader.bench.rows import OURS, Entry
from grader.bench.work import allow_tf32


def prepared(
    entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: list
) -> Callable[[], object]:
    """A call that runs the row's model once on the inputs, which lie as the row wants, with the instance's weights."""
    model = model_of(entry, problem, instance, inputs)

    def run():
        with torch.no_grad():
            return model(*inputs)

    return run


def model_of(entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: list) -> torch.nn.Module:
    """The row's model with the instance's weights, where the inputs are; torch.compile has not compiled it yet."""
    device = next((v.device for v in inputs if isinstance(v, torch.Tensor)), torch.device("cpu"))
    allow_tf32(entry.kind not in OURS and entry.precision == "tf32")
    if entry.file:
        made = load(Path(entry.file)).ModelNew
    else:  # a module of its own: torch.compile keeps only so many variants of one function
        made = problem.module({}).Model
    model = made(*instance.init_args, **instance.init_kwargs).to(device)
    model.load_state_dict(instance.model.state_dict())
    if entry.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if entry.mode:  # dynamic=False: it remembers the shapes of other modules from the same file, and would compile for any size
        model = torch.compile(model, mode=None if entry.mode == "default" else entry.mode, dynamic=False)
    return model


class Layouts:
    """Values as they are, and with their planes in channels_last, made once for all rows: they may fill a GPU."""

    def __init__(self, plain: list):
        self.plain = plain

    @functools.cached_property
    def channels_last(self) -> list:
        def turned(value):
            is_planes = isinstance(value, torch.Tensor) and value.dim() == 4
            return value.contiguous(memory_format=torch.channels_last) if is_planes else value

        return [turned(value) for value in self.plain]

    def of(self, entry: Entry) -> list:
        return self.channels_last if entry.channels_last else self.plain


@functools.cache
def load(file: Path):
    """A submission's module; importing it compiles its kernels, for the CPU where there is no GPU."""
    import simt

    simt.enable()
    name = f"bench_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- how far from float64 --------------------------------------------------------------------------------------------


def expected_of(instance: _problem.Instance, inputs: list) -> dict[int, torch.Tensor]:
    """The float64 answer for the first, a middle and the last image (row of a product): none needs the others. {-1: the
    whole answer} of an input that is no batch."""
    x, *others = inputs
    whole = {-1: (x,)} if not isinstance(x, torch.Tensor) or x.dim() < 2 else {}
    found = {}
    try:
        for image in [] if whole else looked_at(len(x)):
            instance.inputs[:] = [x[image : image + 1], *others]
            found[image] = instance.expected()[0]
        if whole:
            found[-1] = instance.expected()[0]
    except torch.OutOfMemoryError:
        found = {}
    finally:
        instance.inputs[:] = inputs
    return found


def looked_at(images: int) -> list[int]:
    """The first, a middle and the last of them."""
    return sorted({0, images // 2, images - 1})


def error_of(out: object, expected: dict[int, torch.Tensor]) -> float | None:
    """The largest distance from float64, beside the largest value; None where float64's answer is not known or not
    finite."""
    out = _problem.flatten(out)[0]
    return distance((out if image < 0 else out[image : image + 1], right) for image, right in expected.items())


def distance(pairs) -> float | None:
    """Of pairs of an answer's part and the right one."""
    worst, largest, known = 0.0, 0.0, False
    for got, right in pairs:
        if got.shape != right.shape:
            raise ValueError(f"the answer's shape is {tuple(got.shape)}, not {tuple(right.shape)}")
        known = True
        if right.numel():
            worst = max(worst, (got.double() - right).abs().max().item())
            largest = max(largest, right.abs().max().item())
    error = worst / largest if largest else worst
    return error if known and error == error and error != float("inf") else None
