"""What any implementation of a problem must move and compute, and how fast this GPU moves and computes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

import torch

from grader import cases, clock
from grader import problem as _problem
from grader.bench.times import Events


@dataclasses.dataclass(frozen=True)
class Work:
    """What any implementation must do: bytes (inputs, weights and outputs once), operations of products (two a
    multiply-add), and elements touched by everything else. planes: whether an input's layout can be chosen, as it has
    four dimensions."""

    bytes: int
    products: int
    others: int
    planes: bool

    def floor(self, roof: Mapping[str, float], precision: str) -> float | None:
        """Least seconds under a roof (roof_of); None if it is not known. float16 has TF32's 11 bits at twice the rate,
        and three such products make one in fp32."""
        if not roof:
            return None
        fp32, tf32 = roof["fp32_a_second"], max(roof["tf32_a_second"], roof["fp16_a_second"])
        by_products = self.products / (tf32 if precision == "tf32" else max(fp32, tf32 / 3))
        return max(self.bytes / roof["bytes_a_second"], by_products, self.others / fp32)


def work_of(problem: _problem.Problem, backward: bool = False) -> Work:
    """By shapes, on the meta device where the model runs there: nothing is computed. backward: of forward and backward,
    in which inputs, weights and the gradient that comes in are read, and the result and all gradients written."""
    from torch.utils.flop_counter import FlopCounterMode

    def watched(device: str):
        instance = problem.instantiate(problem.full(), 0, device)
        with FlopCounterMode(display=False) as flops:
            return instance, *instance.watched(), flops.get_total_flops()

    try:
        instance, outputs, watch, products = watched("meta")
    except _problem.ProblemError:
        instance, outputs, watch, products = watched("cpu")
    inputs = [v for v in instance.inputs if isinstance(v, torch.Tensor)]
    moved = sum(t.numel() * t.element_size() for t in [*inputs, *instance.model.parameters(), *outputs])
    work = Work(moved, products, max(0, watch.work - products // 2), any(v.dim() == 4 for v in inputs))
    if not backward:
        return work
    # Each product has two of the same size in backward; an element that is touched on the way there is on the way back.
    return dataclasses.replace(work, bytes=2 * work.bytes, products=3 * work.products, others=2 * work.others)


def roof_of() -> dict[str, float]:
    """What this GPU reaches: bytes a second of a large copy, operations a second of large products in three precisions.
    {} without one."""
    if not torch.cuda.is_available():
        return {}
    found, n, one = {"bytes_a_second": clock.copy_rate()}, 8192, Events(lambda: None)
    for precision in ("fp32", "tf32", "fp16"):
        allow_tf32(precision == "tf32")
        a, b = (torch.randn(n, n, device="cuda").to(torch.half if precision == "fp16" else torch.float) for _ in "ab")
        torch.mm(a, b)
        found[f"{precision}_a_second"] = 2 * n**3 / min(one(lambda: torch.mm(a, b)) for _ in range(5))
    return found


def allow_tf32(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed
    torch.set_float32_matmul_precision("high" if allowed else "highest")


# --- memory ----------------------------------------------------------------------------------------------------------


class Sizes(_problem.Mode):
    """Adds up the bytes of every tensor that is made while it is on: more than a model holds at a time."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not any(value.alias_info is not None for value in function._schema.returns):  # else a view, or in place
            made = result if isinstance(result, (tuple, list)) else [result]
            self.bytes += sum(t.numel() * t.element_size() for t in made if isinstance(t, torch.Tensor))
        return result


def need_of(problem: _problem.Problem) -> int:
    """Bytes of the inputs and of all that eager makes of them, none of it freed, by shapes. Raises ProblemError where
    the model does not run on the meta device."""
    instance = problem.instantiate(cases.Case("full size"), 0, "meta")
    inputs = sum(v.numel() * v.element_size() for v in instance.inputs if isinstance(v, torch.Tensor))
    with Sizes() as made, torch.no_grad(), instance.blame():
        instance.model(*instance.inputs)
    return inputs + made.bytes


def memory_of(device: str) -> int:
    """All the bytes that the device has."""
    if device == "cuda":
        return torch.cuda.get_device_properties().total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
