"""Forward and backward of a row in one call, and how far its gradients are from float64's.

What is timed is one forward, and backward from one fixed random gradient of its result to every input that has one and to
every weight. The gradients of the call before are dropped outside of the timed part, so that none is added to another.
"""

from __future__ import annotations

import torch

from grader import problem as _problem
from grader.bench.models import Layouts, distance, looked_at, model_of
from grader.bench.rows import Entry

LARGEST = 1 << 27  # elements of the input and the result that float64 works on at a time: intermediates are several of it

ROUNDING = 2.0**-24  # of float32, relative
STRAY = 8.0  # times eager's error of the same gradient: the order of a sum explains so much, TF32's 11 bits are far more
FEW = 16  # roundings that no gradient is blamed for, however exact eager's is


class NoGradient(Exception):
    """The row's result carries no gradient at all: the model has no backward."""


class Both:
    """A call of forward and backward on leaves of its own; drop() makes it ready for the next."""

    def __init__(
        self, entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: Layouts, upstream: Layouts
    ):
        self.model = model_of(entry, problem, instance, inputs.plain)
        numbers, _ = instance.differentiable()
        self.inputs = [v.detach() if isinstance(v, torch.Tensor) else v for v in inputs.of(entry)]
        for number in numbers:
            self.inputs[number].requires_grad_()
        self.layouts, self.upstream = upstream, None
        self.leaves = [self.inputs[n] for n in numbers] + list(self.model.parameters())
        self.new_graph = torch.compiler.cudagraph_mark_step_begin if entry.mode == "max-autotune" else None
        names = instance.names()
        self.named = {names[n]: self.inputs[n] for n in numbers}
        # Of torch.compile's wrapper a parameter's name begins with its own attribute's.
        self.named |= {name.removeprefix("_orig_mod."): p for name, p in self.model.named_parameters()}

    def __call__(self) -> list[torch.Tensor]:
        """The result, without its graph. Raises NoGradient."""
        with torch.enable_grad():
            outputs = [out for out in _problem.ends(self.model(*self.inputs)) if out.is_floating_point()]
            if not any(out.requires_grad for out in outputs):
                raise NoGradient("its result carries no gradient")
            if self.upstream is None:  # as the result lies, so that nobody copies in the timed part
                self.upstream = [like(out, self.layouts, number) for number, out in enumerate(outputs)]
            pairs = [(out, up) for out, up in zip(outputs, self.upstream, strict=True) if out.requires_grad]
            torch.autograd.backward([out for out, _ in pairs], [up for _, up in pairs])
        return outputs

    def drop(self) -> None:
        for leaf in self.leaves:
            leaf.grad = None
        if self.new_graph is not None and self.leaves and self.leaves[0].is_cuda:
            self.new_graph()


def like(out: torch.Tensor, upstream: Layouts, number: int) -> torch.Tensor:
    """The result's gradient in its layout."""
    planes = out.dim() == 4 and not out.is_contiguous() and out.is_contiguous(memory_format=torch.channels_last)
    return (upstream.channels_last if planes else upstream.plain)[number]


def upstream_of(problem: _problem.Problem, instance: _problem.Instance, seed: int) -> list[torch.Tensor]:
    """One random gradient of the result, the same for every row."""
    with torch.no_grad():
        like = [out for out in _problem.ends(instance.build()(*instance.inputs)) if out.is_floating_point()]
    return problem.upstream(problem.full(), seed, like)


# --- how far from float64 --------------------------------------------------------------------------------------------

Expected = dict[str, dict[int, torch.Tensor]]


def expected_of(instance: _problem.Instance, inputs: list, upstream: list[torch.Tensor]) -> Expected:
    """name -> {image: what float64 says}, -1 for a whole tensor. The result "y" and the first input's gradient are looked
    at in three images, as no image needs another; weights' gradients are summed over all of them. {} where float64 has
    too little memory."""
    x, *others = inputs
    batch = len(x) if isinstance(x, torch.Tensor) and x.dim() > 1 else 0
    if not batch or any(up.dim() == 0 or len(up) != batch for up in upstream):
        batch = 0
    try:
        return _whole(instance, upstream) if not batch else _by_images(instance, x, others, upstream, batch)
    except torch.OutOfMemoryError:
        return {}
    finally:
        instance.inputs[:] = inputs


def _names(instance: _problem.Instance) -> list[str]:
    numbers, parameters = instance.differentiable()
    called = instance.names()
    return [called[n] for n in numbers] + parameters


def _whole(instance: _problem.Instance, upstream: list[torch.Tensor]) -> Expected:
    found = {"y": {-1: instance.expected()[0]}}
    for name, value in zip(_names(instance), instance.expected_gradients(upstream), strict=True):
        if value is not None:
            found[name] = {-1: value}
    return found


def _by_images(instance: _problem.Instance, x: torch.Tensor, others: list, upstream: list, batch: int) -> Expected:
    names, found = _names(instance), {"y": {}}
    per_image = x[0].numel() + sum(up[0].numel() for up in upstream)
    each = max(1, min(batch, LARGEST // max(1, per_image)))
    of_images = x.is_floating_point()  # the first name is x
    looked = looked_at(batch)
    for start in range(0, batch, each):
        part = slice(start, min(batch, start + each))
        instance.inputs[:] = [x[part], *others]
        made = instance.expected_gradients([up[part] for up in upstream])
        for number, (name, value) in enumerate(zip(names, made, strict=True)):
            if value is None:
                continue
            if number == 0 and of_images:
                here = {i: value[i - start : i - start + 1].clone() for i in looked if part.start <= i < part.stop}
                found.setdefault(name, {}).update(here)
            elif name in found:
                found[name][-1] += value
            else:
                found[name] = {-1: value.clone()}
        del made
    for image in looked:
        instance.inputs[:] = [x[image : image + 1], *others]
        found["y"][image] = instance.expected()[0]
    return found


def errors_of(both: Both, outputs: list[torch.Tensor], expected: Expected) -> dict[str, float | None]:
    """For the result "y" and each gradient the largest distance from float64, beside its largest value. Raises ValueError
    where one is missing."""
    found = {}
    for name, parts in expected.items():
        got = outputs[0].detach() if name == "y" else both.named[name].grad if name in both.named else None
        if got is None:
            raise ValueError(f"{name} gets no gradient")
        found[name] = distance((got if image < 0 else got[image : image + 1], right) for image, right in parts.items())
    return found


def within(errors: dict[str, float | None], eager: dict[str, float | None], proof: float) -> bool | None:
    """Whether the largest error is at most `proof` times eager's largest, as forward's is; and, as one gradient may be
    ill-conditioned, no other hides behind it: each at most STRAY times eager's own. None if one is not known."""
    if not errors or any(errors.get(name) is None or eager.get(name) is None for name in errors):
        return None
    worst, held = max(errors.values()), max(eager[name] for name in errors)
    return worst <= max(proof * held, ROUNDING) and all(
        error <= max(STRAY * eager[name], FEW * ROUNDING) for name, error in errors.items()
    )
