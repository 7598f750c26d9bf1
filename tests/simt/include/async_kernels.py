"""Asynchronous copies for the tests: the headers of each source, how its kernels are declared, and how one is run."""

from __future__ import annotations

import torch

from tests.simt.kernels_of_expressions import DEVICE

HEADERS = """
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
#define KERNEL(name, ...) void run_##name(torch::Tensor x, torch::Tensor out, int n) { \\
  name<<<1, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), n); }
"""


def make_declarations(names: list[str]) -> list[str]:
    return [f"void run_{name}(torch::Tensor x, torch::Tensor out, int n)" for name in names]


def run_kernel(kernels, name: str, x: torch.Tensor, size: int, n: int) -> torch.Tensor:
    out = torch.full((size,), 5.0, device=DEVICE)
    getattr(kernels, f"run_{name}")(x.to(DEVICE), out, n)
    return out.cpu()


X = torch.randn(2048, generator=torch.Generator().manual_seed(2))
