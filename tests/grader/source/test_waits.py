"""Are the calls found with which the CPU waits for the GPU in each forward, and no others?"""

import pytest

from grader.paths import KERNELS_REF
from grader.source import waits

FILE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void scale(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] *= 2.0f; }
void finish(float* p) {
    HELPER;
}
torch::Tensor run(torch::Tensor x) {
    auto y = x.clone();
    scale<<<1, 32>>>(y.data_ptr<float>(), y.numel());
    CPP
    finish(nullptr);
    return y;
}
void never_called() { cudaDeviceSynchronize(); }
"""
kernels = load_inline("waits", "torch::Tensor run(torch::Tensor x);", source, functions=["run"])


def unused(x):
    torch.cuda.synchronize()


def after(y):
    AFTER
    return y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.cuda.synchronize()

    def forward(self, x):
        PYTHON
        return after(kernels.run(x))
'''


def find(place: str = "", code: str = "") -> list[str]:
    """Return the calls that are found with this code at one of the file's places, each at its own line."""
    text = FILE
    for name in ("HELPER", "CPP", "AFTER", "PYTHON"):
        text = text.replace(name, code if name == place else "pass" if name in ("AFTER", "PYTHON") else "")
    found = waits.find(text)
    lines = text.splitlines()
    assert all(one.call.strip("().").split("::")[-1] in lines[one.line - 1] for one in found)
    assert all(one.instead.endswith(".") for one in found)
    return [one.call for one in found]


@pytest.mark.parametrize(
    "place, code, expected",
    [
        ("CPP", "cudaDeviceSynchronize();", ["cudaDeviceSynchronize()"]),
        ("CPP", "C10_CUDA_CHECK(cudaDeviceSynchronize());", ["cudaDeviceSynchronize()"]),
        ("CPP", "if (cudaDeviceSynchronize() != cudaSuccess) throw 1;", ["cudaDeviceSynchronize()"]),
        ("CPP", "for (int k = 0; k < 2; k++) { cudaStreamSynchronize(0); }", ["cudaStreamSynchronize()"]),
        ("CPP", "cudaMemcpy(a, b, n, cudaMemcpyDeviceToHost);", ["cudaMemcpy()"]),
        ("CPP", "cudaMemcpyToSymbol(table, b, n);", ["cudaMemcpyToSymbol()"]),
        ("CPP", "c10::cuda::getCurrentCUDAStream().synchronize();", [".synchronize()"]),
        ("CPP", "torch::cuda::synchronize();", ["torch::cuda::synchronize()"]),
        ("CPP", "float top = y.max().item<float>();", [".item()"]),
        ("CPP", "auto near = y.cpu();", [".cpu()"]),
        ("HELPER", "cudaFree(p)", ["cudaFree()"]),
        ("PYTHON", "torch.cuda.synchronize()", ["torch.cuda.synchronize()"]),
        ("PYTHON", "top = x.max().item()", [".item()"]),
        ("AFTER", "y = y.cpu().cuda()", [".cpu()"]),
    ],
)
def test_each_wait_is_found(place, code, expected):
    """Is a wait of forward found, also in a function that it calls, and named by its call?"""
    assert find(place, code) == expected


@pytest.mark.parametrize(
    "place, code",
    [
        ("", ""),
        ("CPP", "// cudaDeviceSynchronize();"),
        ("CPP", "if (y.numel() < 0) cudaDeviceSynchronize();"),
        ("CPP", "if (y.numel() < 0) { int a = 0; cudaDeviceSynchronize(); }"),
        ("CPP", "if (debug) { } else cudaDeviceSynchronize();"),
        ("CPP", "#ifdef DEBUG\n    cudaDeviceSynchronize();\n#endif"),
        ("CPP", "cudaMemcpyAsync(a, b, n, cudaMemcpyDeviceToHost);"),
        ("CPP", "cudaMemcpy(a, b, n, cudaMemcpyDeviceToDevice);"),
        ("CPP", "cudaMemsetAsync(a, 0, n);"),
        ("PYTHON", "if x.is_meta: torch.cuda.synchronize()"),
        ("PYTHON", "count = x.numel()"),
    ],
)
def test_nothing_else_is_a_wait(place, code):
    """Is nothing found where forward does not wait, or only under a condition?"""
    assert find(place, code) == []


def test_the_reference_solutions_do_not_wait():
    """Is no solution, and no step but those that read a number back, said to wait?"""
    files = sorted(KERNELS_REF.glob("*/*.py")) + sorted(KERNELS_REF.glob("*/steps/*.py"))
    found = {file.relative_to(KERNELS_REF).as_posix(): waits.find(file.read_text(encoding="utf-8")) for file in files}
    assert len(files) > 40 and {name: calls for name, calls in found.items() if calls} == {}


def test_a_file_that_is_no_python():
    """Is nothing found, and nothing raised?"""
    assert waits.find("def forward(:") == []
