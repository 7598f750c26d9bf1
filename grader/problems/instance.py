"""One model with weights and inputs: its expected outputs and gradients, eager's, and how far rounding moves them."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable

import torch

from grader.problems.cases import PRECISIONS, ProblemError
from grader.problems.draws import seeded
from grader.problems.operators import Tf32, Watch
from grader.problems.values import (
    convert_to_double,
    copy_values,
    double_by_default,
    ends,
    exact_float32,
    flatten,
    is_floating,
    make_double,
    measure_distance,
    perturb,
)
from grader.worker import protocol


@dataclasses.dataclass
class Instance:
    """One model with weights and one list of inputs.

    model: the reference, not yet run (its state_dict is what a submission loads). init_args, init_kwargs: what
    Model was constructed with. inputs: what forward takes; tensors on the device, other values as they are.
    kind: what forward returned when it was last run, as worker.protocol.kind_of() names it. weight_seed: from which the
    constructor drew the weights, if a submission is to draw the same; else None. given: the parameters that a
    submission is given in that case, as no constructor draws them.
    """

    model: torch.nn.Module
    init_args: list
    inputs: list
    init_kwargs: dict
    build: Callable[..., torch.nn.Module]
    blame: Callable[[], contextlib.AbstractContextManager]
    precision: str = PRECISIONS[0]
    kind: str = ""
    weight_seed: int | None = None
    given: list[str] | None = None

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the weights that a submission loads, by name."""
        state = self.model.state_dict()
        return state if self.given is None else {name: state[name] for name in self.given}

    def eager(self) -> list[torch.Tensor]:
        """Return the outputs in the model's own dtype, with TF32 and other shortcuts off. A fresh model each time.

        In a problem of precision "tf32": with the factors of every product rounded to TF32, as tensor cores take them.
        """
        with Tf32() if self.precision == "tf32" else contextlib.nullcontext():
            return self._run(self.build(), copy_values(self.inputs))

    def evaluated(self) -> list[torch.Tensor]:
        """Return eager's outputs after model.eval(), in the model's own dtype. A fresh model."""
        return self._run(self.build().eval(), copy_values(self.inputs))

    def expected(self) -> list[torch.Tensor]:
        """Return the outputs computed in float64 (floating outputs are float64; others keep their dtype)."""
        try:
            return self._run_double(rounding=0.0)
        except ProblemError:
            # A model that insists on its own dtype inside has no float64 form: its own result is all there is.
            return [out.double() if out.is_floating_point() else out for out in self.eager()]

    def noise(self, expected: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return how far each output moves (float32, absolute) when every input and weight is off by one rounding.

        This is the error that no float32 implementation can be blamed for; tolerance.tolerance() is built on it.
        expected: what expected() returned.
        """
        try:
            moved = self._run_double(rounding=self._unit())
        except ProblemError:
            moved = [out.clone() for out in expected]
        return [measure_distance(a, b) for a, b in zip(expected, moved)]

    # -- gradients: a list of one for each of differentiable() --

    def differentiable_later(self) -> bool:
        """Return whether another call leaves the gradient of the one before as it was.

        A Model that writes to a tensor of its own may spoil it.
        """
        try:
            model, inputs = self.build(), copy_values(self.inputs)
            with self.blame(), torch.enable_grad(), seeded(0, None):
                for number in self.differentiable()[0]:
                    inputs[number].requires_grad_()
                outputs = [out for out in ends(model(*inputs)) if out.requires_grad]
                model(*copy_values(self.inputs))
                # Of sums: to compare the shapes of given gradients, torch would import SymPy, which takes time.
                for out in outputs:
                    (out.real if out.is_complex() else out).sum().backward(retain_graph=True)
        except ProblemError as error:
            return "inplace operation" not in error.message
        return True

    def differentiable(self) -> tuple[list[int], list[str]]:
        """Return the numbers of the inputs and names of the parameters that can have a gradient."""
        inputs = [number for number, value in enumerate(self.inputs) if is_floating(value)]
        return inputs, [name for name, p in self.model.named_parameters() if is_floating(p) and p.requires_grad]

    def names(self) -> list[str]:
        """Return what forward calls each input, or "input 0"."""
        taken = [
            p.name
            for p in inspect.signature(self.model.forward).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        return [taken[n] if n < len(taken) else f"input {n}" for n in range(len(self.inputs))]

    def gradients(self, upstream: list[torch.Tensor]) -> tuple[list[torch.Tensor | None], int]:
        """Return eager's gradients in the model's own dtype, and the longest sum in forward or backward."""
        watch = Watch()
        model, inputs = self.build(), copy_values(self.inputs)
        with watch:
            return self._differentiate(model, inputs, upstream), watch.reduction

    def expected_gradients(self, upstream: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """Return the gradients in float64."""
        try:
            return self._gradients_double(upstream, rounding=0.0)
        except ProblemError:  # as in expected()
            return [value if value is None else value.double() for value in self.gradients(upstream)[0]]

    def gradient_noise(
        self, upstream: list[torch.Tensor], expected: list[torch.Tensor | None]
    ) -> list[torch.Tensor | None]:
        """Return how far each gradient moves when every input, weight and upstream gradient is off by one rounding.

        In a problem of precision "fp16" it is a rounding to 16 bits: a backward pass also has forward's result, which
        is rounded so, and large terms may cancel in it, as in softmax's.
        """
        unit = torch.finfo(torch.float16).eps / 2 if self.precision == "fp16" else self._unit()
        try:
            moved = self._gradients_double(upstream, rounding=unit)
        except ProblemError:
            return [value if value is None else torch.zeros_like(value, dtype=torch.float32) for value in expected]
        return [None if a is None or b is None else measure_distance(a, b) for a, b in zip(expected, moved)]

    def _gradients_double(self, upstream: list[torch.Tensor], rounding: float) -> list[torch.Tensor | None]:
        model, inputs, upstream = make_double(self.build()), convert_to_double(self.inputs), convert_to_double(upstream)
        if rounding:
            perturb(model, inputs + upstream, rounding)
        with double_by_default():
            return self._differentiate(model, inputs, upstream)

    def _differentiate(
        self, model: torch.nn.Module, inputs: list, upstream: list[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        numbers, names = self.differentiable()
        own = dict(model.named_parameters())
        with self.blame(), torch.enable_grad(), exact_float32(), seeded(0, None):
            wanted = [inputs[n].requires_grad_() for n in numbers] + [own[name] for name in names]
            outputs = [out for out in ends(model(*inputs)) if out.is_floating_point()]
            pairs = [(out, up) for out, up in zip(outputs, upstream) if out.requires_grad]
            if not pairs:
                return [None] * len(wanted)
            made = torch.autograd.grad([out for out, _ in pairs], wanted, [up for _, up in pairs], allow_unused=True)
        return [value if value is None else value.to_dense() if value.is_sparse else value for value in made]

    def reduction(self) -> int:
        """Return how many terms the model sums for one number, at most, over all of its steps (1 if none)."""
        return self.watched()[1].reduction

    def watched(self, most_operations: int | None = None) -> tuple[list[torch.Tensor], Watch]:
        """Return eager's outputs and what it took to compute them. Raises ProblemError beyond most_operations."""
        watch = Watch(most_operations)
        model, inputs = self.build(), copy_values(self.inputs)
        with watch:
            return self._run(model, inputs), watch

    def _run_double(self, rounding: float) -> list[torch.Tensor]:
        model, inputs = make_double(self.build()), convert_to_double(self.inputs)
        if rounding:
            perturb(model, inputs, rounding)
        with double_by_default():
            return self._run(model, inputs)

    def _unit(self) -> float:
        """Return the relative rounding error of the coarsest dtype among inputs and weights (6e-8 for float32).

        In a problem of precision "fp16" it is float32's: what is computed from them is not rounded as they are.
        """
        if self.precision == "fp16":
            return 2.0**-24
        tensors = [value for value in (*self.inputs, *self.model.parameters()) if is_floating(value)]
        return max((torch.finfo(t.dtype).eps / 2 for t in tensors), default=2.0**-24)

    def _run(self, model: torch.nn.Module, inputs: list) -> list[torch.Tensor]:
        with self.blame(), torch.no_grad(), exact_float32(), seeded(0, None):
            made = model(*inputs)
            self.kind = protocol.kind_of(made)
            return flatten(made)
