"""Runs lists of CUDA expressions in kernels: on the CPU through simt, on a GPU through nvcc."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

import torch
import torch.utils.cpp_extension

import simt

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
_INCLUDES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <math_constants.h>
#define POINTER(type, tensor) ((type*)(tensor).data_ptr())
"""
# torch compiles half arithmetic away from CUDA sources unless told otherwise.
_FLAGS = [
    "-U__CUDA_NO_HALF_OPERATORS__",
    "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_HALF2_OPERATORS__",
    "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
]


def load(cuda: str, declarations: list[str]) -> Any:
    """The extension module of a CUDA source whose host functions are declared by `declarations`."""
    source = _INCLUDES + cuda
    name = "headers_" + hashlib.sha256(source.encode()).hexdigest()[:12]
    build = torch.utils.cpp_extension.load_inline if ON_GPU else simt.load_inline
    return build(
        name,
        cpp_sources="#include <torch/extension.h>\n" + "\n".join(d + ";" for d in declarations),
        cuda_sources=source,
        functions=[d.split("(")[0].split()[-1] for d in declarations],
        extra_cuda_cflags=_FLAGS,
    )


class Expressions:
    """Sets of expressions over the elements of tensors; each set becomes one kernel, all sets one module.

    add("double", {"x": "double"}, ["rsqrt(x)"]) then run(number, x) gives a tensor (expressions, n).
    """

    _TORCH: ClassVar[dict[str, torch.dtype]] = {
        "float": torch.float32,
        "double": torch.float64,
        "int": torch.int32,
        "long long": torch.int64,
        "unsigned": torch.int32,
        "unsigned long long": torch.int64,
        "unsigned short": torch.int16,
        "short": torch.int16,
    }

    def __init__(self) -> None:
        self._sets: list[tuple[str, dict[str, str], list[str]]] = []
        self._module = None

    def add(self, result: str, inputs: dict[str, str], expressions: list[str]) -> int:
        self._sets.append((result, inputs, expressions))
        return len(self._sets) - 1

    def _source(self) -> tuple[str, list[str]]:
        text, declarations = "", []
        for number, (result, inputs, expressions) in enumerate(self._sets):
            parameters = "".join(f"const {kind}* {name}_, " for name, kind in inputs.items())
            reads = " ".join(f"{kind} {name} = {name}_[i];" for name, kind in inputs.items())
            body = "\n".join(f"  out[{row}ll * n + i] = ({result})({e});" for row, e in enumerate(expressions))
            text += f"__global__ void k{number}({parameters}{result}* out, int n) {{\n"
            text += f"  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n  {reads}\n{body}\n}}\n"
            declaration = f"void f{number}({''.join(f'torch::Tensor {name}, ' for name in inputs)}torch::Tensor out)"
            arguments = "".join(f"POINTER(const {kind}, {name}), " for name, kind in inputs.items())
            first = next(iter(inputs))
            text += (
                f"{declaration} {{ int n = {first}.numel(); "
                f"k{number}<<<(n + 127) / 128, 128>>>({arguments}POINTER({result}, out), n); }}\n"
            )
            declarations.append(declaration)
        return text, declarations

    def run(self, number: int, *inputs: torch.Tensor) -> torch.Tensor:
        if self._module is None:
            self._module = load(*self._source())
        result, _, expressions = self._sets[number]
        out = torch.empty(len(expressions), inputs[0].numel(), dtype=self._TORCH[result], device=DEVICE)
        getattr(self._module, f"f{number}")(*(t.to(DEVICE).contiguous() for t in inputs), out)
        return out.cpu()
