"""Run forward and backward of a row in one call, and measure the error of its gradients against float64.

The timed part is one forward, and backward from one fixed random upstream gradient to every floating-point input and
every weight. The gradients of the previous call are dropped outside of the timed part, so that gradients do not
accumulate.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from grader.bench.models import (
    Layouts,
    build_model,
    find_divided,
    measure_difference,
    sample_images,
    select_images,
)
from grader.bench.rows import Entry
from grader.problems import problem as _problem

# elements of input and result that float64 computes at a time: its intermediates need several times as many
MAX_ELEMENTS = 1 << 27

ROUNDING = 2.0**-24  # of float32, relative
# times eager's error of the same gradient: the order of a sum explains this much, TF32's 11 bits cause far more
GRADIENT_FACTOR = 8.0
FREE_ROUNDINGS = 16  # allowed to every gradient, however exact eager's is


class NoGradient(Exception):
    """Raised where a row's result carries no gradient: the model has no backward."""


class ForwardBackward:
    """A call of forward and backward on its own leaves; drop() prepares the next call."""

    def __init__(
        self, entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: Layouts, upstream: Layouts
    ):
        self.model = build_model(entry, problem, instance, inputs.plain)
        numbers, _ = instance.differentiable()
        self.inputs = [v.detach() if isinstance(v, torch.Tensor) else v for v in inputs.choose(entry)]
        for number in numbers:
            self.inputs[number].requires_grad_()
        self.layouts, self.upstream = upstream, None
        self.leaves = [self.inputs[n] for n in numbers] + list(self.model.parameters())
        self.new_graph = torch.compiler.cudagraph_mark_step_begin if entry.mode == "max-autotune" else None
        names = instance.names()
        self.named = {names[n]: self.inputs[n] for n in numbers}
        # torch.compile's wrapper prefixes the names of parameters.
        self.named |= {name.removeprefix("_orig_mod."): p for name, p in self.model.named_parameters()}

    def __call__(self) -> list[torch.Tensor]:
        """Run forward and backward and return the floating-point results. Raises NoGradient."""
        with torch.enable_grad():
            outputs = [out for out in _problem.ends(self.model(*self.inputs)) if out.is_floating_point()]
            if not any(out.requires_grad for out in outputs):
                raise NoGradient("its result carries no gradient")
            if self.upstream is None:  # in the result's layout, so that the timed part contains no copy
                self.upstream = [match_layout(out, self.layouts, number) for number, out in enumerate(outputs)]
            pairs = [(out, up) for out, up in zip(outputs, self.upstream, strict=True) if out.requires_grad]
            torch.autograd.backward([out for out, _ in pairs], [up for _, up in pairs])
        return outputs

    def drop(self) -> None:
        """Drop all gradients."""
        for leaf in self.leaves:
            leaf.grad = None
        if self.new_graph is not None and self.leaves and self.leaves[0].is_cuda:
            self.new_graph()


def match_layout(out: torch.Tensor, upstream: Layouts, number: int) -> torch.Tensor:
    """Return the upstream gradient of a result in the result's layout."""
    planes = out.dim() == 4 and not out.is_contiguous() and out.is_contiguous(memory_format=torch.channels_last)
    return (upstream.channels_last if planes else upstream.plain)[number]


def make_upstream(problem: _problem.Problem, instance: _problem.Instance, seed: int) -> list[torch.Tensor]:
    """Return one random gradient for each result, the same for every row."""
    with torch.no_grad():
        outputs = [out for out in _problem.ends(instance.build()(*instance.inputs)) if out.is_floating_point()]
    return problem.upstream(problem.full(), seed, outputs)


# --- errors against float64 ------------------------------------------------------------------------------------------

Expected = dict[str, dict[int, torch.Tensor]]


def compute_expected(instance: _problem.Instance, inputs: list, upstream: list[torch.Tensor]) -> Expected:
    """Return name -> {image: expected value in float64}, with image -1 for a whole tensor.

    The result "y" and the first input's gradient are computed for three images, as no image needs another; weights'
    gradients are summed over all images. Return {} where float64 needs more memory than there is.
    """
    x = inputs[0]
    batch = len(x) if isinstance(x, torch.Tensor) and x.dim() > 1 else 0
    if not batch or any(up.dim() == 0 or len(up) != batch for up in upstream):
        batch = 0
    try:
        return (
            _compute_whole(instance, upstream) if not batch else _compute_by_images(instance, inputs, upstream, batch)
        )
    except torch.OutOfMemoryError:
        return {}
    finally:
        instance.inputs[:] = inputs


def _list_gradient_names(instance: _problem.Instance) -> list[str]:
    numbers, parameters = instance.differentiable()
    input_names = instance.names()
    return [input_names[n] for n in numbers] + parameters


def _compute_whole(instance: _problem.Instance, upstream: list[torch.Tensor]) -> Expected:
    found = {"y": {-1: instance.expected()[0]}}
    for name, value in zip(_list_gradient_names(instance), instance.expected_gradients(upstream), strict=True):
        if value is not None:
            found[name] = {-1: value}
    return found


def _compute_by_images(instance: _problem.Instance, inputs: list, upstream: list, batch: int) -> Expected:
    names, found = _list_gradient_names(instance), {"y": {}}
    divided = find_divided(instance, inputs)
    numbers, parameters = instance.differentiable()
    of_images = [divided[number] for number in numbers] + [False] * len(parameters)
    moved = [value for value, each in zip(inputs, divided) if each]
    per_image = sum(value[0].numel() for value in [*moved, *upstream])
    each = max(1, min(batch, MAX_ELEMENTS // max(1, per_image)))
    sampled = sample_images(batch)
    for start in range(0, batch, each):
        part = slice(start, min(batch, start + each))
        instance.inputs[:] = select_images(inputs, divided, part)
        made = instance.expected_gradients([up[part] for up in upstream])
        for name, value, is_of_images in zip(names, made, of_images, strict=True):
            if value is None:
                continue
            if is_of_images:
                here = {i: value[i - start : i - start + 1].clone() for i in sampled if part.start <= i < part.stop}
                found.setdefault(name, {}).update(here)
            elif name in found:
                found[name][-1] += value
            else:
                found[name] = {-1: value.clone()}
        del made
    for image in sampled:
        instance.inputs[:] = select_images(inputs, divided, slice(image, image + 1))
        found["y"][image] = instance.expected()[0]
    return found


def measure_errors(both: ForwardBackward, outputs: list[torch.Tensor], expected: Expected) -> dict[str, float | None]:
    """Return the relative error of the result "y" and of each gradient. Raises ValueError if a gradient is missing."""
    found = {}
    for name, parts in expected.items():
        got = outputs[0].detach() if name == "y" else both.named[name].grad if name in both.named else None
        if got is None:
            raise ValueError(f"{name} gets no gradient")
        found[name] = measure_difference(
            (got if image < 0 else got[image : image + 1], right) for image, right in parts.items()
        )
    return found


def is_within_class(
    errors: Mapping[str, float | None], eager: Mapping[str, float | None], factor: float
) -> bool | None:
    """Return whether the largest error is at most `factor` times eager's largest; None if an error is not known.

    As one ill-conditioned gradient could hide errors of others, each must also be at most GRADIENT_FACTOR times eager's
    error of the same gradient.
    """
    got = {name: error for name, error in errors.items() if error is not None}
    allowed = {name: error for name in errors if (error := eager.get(name)) is not None}
    if not errors or not errors.keys() == got.keys() == allowed.keys():
        return None
    return max(got.values()) <= max(factor * max(allowed.values()), ROUNDING) and all(
        error <= max(GRADIENT_FACTOR * allowed[name], FREE_ROUNDINGS * ROUNDING) for name, error in got.items()
    )
