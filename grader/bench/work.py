"""Count the bytes and operations that any implementation of a problem needs, and measure what this GPU reaches."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping

import torch

from grader.bench.times import EventTimer
from grader.judging import clock
from grader.problems import cases
from grader.problems import problem as _problem


@dataclasses.dataclass(frozen=True)
class Work:
    """The least work of any implementation.

    bytes: inputs, weights and outputs once. products: operations of matrix products and convolutions, two per
    multiply-add. others: elements touched by all other operators. planes: whether an input has four dimensions, so that
    its layout can be chosen.
    """

    bytes: int
    products: int
    others: int
    planes: bool

    def compute_bound(self, roof: Mapping[str, float], precision: str) -> float | None:
        """Return the roofline bound in seconds under a roof (measure_roof), or None without one.

        fp16 has the same 11-bit significand as TF32 at twice the throughput, and three such products give one in fp32.
        """
        if not roof:
            return None
        fp32, tf32 = roof["fp32_a_second"], max(roof["tf32_a_second"], roof["fp16_a_second"])
        by_products = self.products / (max(fp32, tf32 / 3) if precision == "fp32" else tf32)
        return max(self.bytes / roof["bytes_a_second"], by_products, self.others / fp32)


def count_work(problem: _problem.Problem, backward: bool = False) -> Work:
    """Count the work from shapes, on the meta device where the model runs there.

    backward: count forward and backward, which read inputs, weights and the upstream gradient, and write the result and
    all gradients.
    """
    from torch.utils.flop_counter import FlopCounterMode

    def run_watched(device: str):
        instance = problem.instantiate(problem.full(), 0, device)
        with FlopCounterMode(display=False) as flops:
            return instance, *instance.watched(), flops.get_total_flops()

    try:
        instance, outputs, watch, products = run_watched("meta")
    except _problem.ProblemError:
        instance, outputs, watch, products = run_watched("cpu")
    inputs = [v for v in instance.inputs if isinstance(v, torch.Tensor)]
    moved = sum(t.numel() * t.element_size() for t in [*inputs, *instance.model.parameters(), *outputs])
    work = Work(moved, products, max(0, watch.work - products // 2), any(v.dim() == 4 for v in inputs))
    if not backward:
        return work
    # Each product has two of the same size in backward; an element that forward touches, backward touches too.
    return dataclasses.replace(work, bytes=2 * work.bytes, products=3 * work.products, others=2 * work.others)


def measure_roof() -> dict[str, float]:
    """Return what this GPU reaches: bytes per second of a large copy, operations per second of large products in three
    precisions. Return {} without a GPU.
    """
    copied = clock.copy_rate()
    if copied is None:
        return {}
    found, n, time_one = {"bytes_a_second": copied}, 8192, EventTimer(lambda: None)
    for precision, dtype in (("fp32", torch.float), ("tf32", torch.float), ("fp16", torch.half)):
        allow_tf32(precision == "tf32")
        product = functools.partial(torch.mm, *(torch.randn(n, n, device="cuda").to(dtype) for _ in range(2)))
        product()
        found[f"{precision}_a_second"] = 2 * n**3 / min(time_one(product) for _ in range(5))
    return found


def allow_tf32(allowed: bool) -> None:
    """Let torch's products and convolutions use TF32, or forbid it."""
    torch.backends.cudnn.allow_tf32 = allowed
    torch.set_float32_matmul_precision("high" if allowed else "highest")


# --- memory ----------------------------------------------------------------------------------------------------------


class AllocatedBytes(_problem.Mode):
    """Sums the bytes of every tensor created while it is active: an upper bound of what a model holds at a time."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not any(value.alias_info is not None for value in function._schema.returns):  # else a view, or in place
            made = result if isinstance(result, (tuple, list)) else [result]
            self.bytes += sum(t.numel() * t.element_size() for t in made if isinstance(t, torch.Tensor))
        return result


def estimate_memory(problem: _problem.Problem) -> int:
    """Return the bytes of the inputs and of all tensors that eager creates, none of them freed, from shapes.

    Raises ProblemError where the model does not run on the meta device.
    """
    instance = problem.instantiate(cases.Case("full size"), 0, "meta")
    inputs = sum(v.numel() * v.element_size() for v in instance.inputs if isinstance(v, torch.Tensor))
    with AllocatedBytes() as made, torch.no_grad(), instance.blame():
        instance.model(*instance.inputs)
    return inputs + made.bytes


def read_device_memory(device: str) -> int:
    """Return the bytes of memory that the device has."""
    if device == "cuda":
        return torch.cuda.get_device_properties().total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
