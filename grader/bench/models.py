"""Build a row's model with the problem's weights, and measure its error against float64."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch

from grader.bench.rows import OURS, Entry
from grader.bench.work import allow_tf32
from grader.problems import problem as _problem


def prepare_call(
    entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: list
) -> Callable[[], object]:
    """Return a call that runs the row's model once on inputs in the row's layout, with the instance's weights."""
    model = build_model(entry, problem, instance, inputs)

    def run():
        with torch.no_grad():
            return model(*inputs)

    return run


def build_model(entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: list) -> Callable:
    """Return the row's model with the instance's weights, on the inputs' device. torch.compile compiles it when it is
    first called.
    """
    device = next((v.device for v in inputs if isinstance(v, torch.Tensor)), torch.device("cpu"))
    allow_tf32(entry.kind not in OURS and entry.precision == "tf32")
    # A separate module per row: torch.compile limits the variants that it keeps of one function.
    made = load(Path(entry.file)).ModelNew if entry.file and not entry.anchor else problem.module({}).Model
    model = made(*instance.init_args, **instance.init_kwargs).to(device)
    model.load_state_dict(instance.model.state_dict())
    if entry.anchor:
        assert entry.file is not None
        return Anchor(load(Path(entry.file)).ANCHORS[entry.anchor], model, inputs)
    if entry.channels_last:
        model = model.to(memory_format=torch.channels_last)
    # dynamic=False: torch.compile remembers shapes of other modules of the same file and would compile for any size
    if entry.mode:
        model = torch.compile(model, mode=None if entry.mode == "default" else entry.mode, dynamic=False)
    return model


class Anchor(torch.nn.Module):
    """What an anchor of a problem prepared, as a model. prepare: of the problem's anchors.py."""

    def __init__(self, prepare: Callable, model: torch.nn.Module, inputs: list):
        super().__init__()
        self.model = model
        self.run = prepare(model, *inputs)

    def forward(self, *inputs):
        return self.run(*inputs)


class Layouts:
    """Values as given, and with 4-dimensional tensors in channels_last; made once for all rows, as they are large."""

    def __init__(self, plain: list):
        self.plain = plain

    @functools.cached_property
    def channels_last(self) -> list:
        """The values in channels_last."""

        def convert(value):
            is_planes = isinstance(value, torch.Tensor) and value.dim() == 4
            return value.contiguous(memory_format=torch.channels_last) if is_planes else value

        return [convert(value) for value in self.plain]

    def choose(self, entry: Entry) -> list:
        """Return the values in the row's layout."""
        return self.channels_last if entry.channels_last else self.plain


@functools.cache
def load(file: Path):
    """Import a submission, which compiles its kernels, for the CPU where there is no GPU. Return its module."""
    from simt.runtime import replacement, torch_device

    replacement.replace_load_inline()
    name = f"bench_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    with torch_device.cuda_on_cpu():
        spec.loader.exec_module(module)
    return module


# --- errors against float64 ------------------------------------------------------------------------------------------


def compute_expected(instance: _problem.Instance, inputs: list) -> dict[int, torch.Tensor]:
    """Return the expected output in float64 for the first, a middle and the last image, by its number.

    No image (or row of a matrix product) needs another. Return {-1: whole output} for an input that is no batch, and {}
    where float64 needs more memory than there is.
    """
    x = inputs[0]
    whole = {-1: (x,)} if not isinstance(x, torch.Tensor) or x.dim() < 2 else {}
    found = {}
    try:
        divided = [] if whole else find_divided(instance, inputs)
        for image in [] if whole else sample_images(len(x)):
            instance.inputs[:] = select_images(inputs, divided, slice(image, image + 1))
            found[image] = instance.expected()[0]
        if whole:
            found[-1] = instance.expected()[0]
    except torch.OutOfMemoryError:
        found = {}
    finally:
        instance.inputs[:] = inputs
    return found


def find_divided(instance: _problem.Instance, inputs: list) -> list[bool]:
    """Return which inputs hold one part for each image: the first one, and where the model wants it others that are as
    long, as the keys and values of attention. They are the fewest with which the first image has the result's shape.
    """
    x = inputs[0]
    alike = [n for n, v in enumerate(inputs) if n and isinstance(v, torch.Tensor) and v.dim() and len(v) == len(x)]
    if not alike:
        return [number == 0 for number in range(len(inputs))]

    def find_shape(values: list) -> tuple[int, ...]:
        with torch.no_grad():
            return tuple(_problem.flatten(instance.build()(*values))[0].shape)

    wanted = (1, *find_shape(inputs)[1:])
    for chosen in itertools.chain.from_iterable(itertools.combinations(alike, n) for n in range(len(alike))):
        divided = [number == 0 or number in chosen for number in range(len(inputs))]
        try:
            if find_shape(select_images(inputs, divided, slice(0, 1))) == wanted:
                return divided
        except (RuntimeError, IndexError):  # of shapes that do not fit
            continue
    return [number == 0 or number in alike for number in range(len(inputs))]


def select_images(inputs: list, divided: Sequence[bool], images: slice) -> list:
    """Return the inputs with some images alone. divided: as find_divided returns it."""
    return [value[images] if each else value for value, each in zip(inputs, divided, strict=True)]


def sample_images(images: int) -> list[int]:
    """Return the numbers of the first, a middle and the last image."""
    return sorted({0, images // 2, images - 1})


def measure_error(out: object, expected: dict[int, torch.Tensor]) -> float | None:
    """Return the largest difference from the expected output relative to its largest value; None where the expected
    output is not known or not finite.
    """
    out = _problem.flatten(out)[0]
    return measure_difference(
        (out if image < 0 else out[image : image + 1], right) for image, right in expected.items()
    )


def measure_difference(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float | None:
    """Return the largest relative difference over pairs of (got, expected). Raises ValueError where shapes differ."""
    worst, largest, known = 0.0, 0.0, False
    for got, expected in pairs:
        if got.shape != expected.shape:
            raise ValueError(f"the output's shape is {tuple(got.shape)}, not {tuple(expected.shape)}")
        known = True
        if expected.numel():
            worst = max(worst, (got.double() - expected).abs().max().item())
            largest = max(largest, expected.abs().max().item())
    error = worst / largest if largest else worst
    return error if known and error == error and error != float("inf") else None
