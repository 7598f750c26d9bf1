"""Is device memory that every call allocates and never frees a leak, and memory that is kept or owned none?"""

import pytest

from grader.verdict import Outcome, Reason
from tests.grader.scaffold import forward

SOURCE = r"""
static float* workspace = nullptr;
__global__ void scale_kernel(const float* x, const float* scale, float* y, int n, int features) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * scale[i % features];
}
torch::Tensor scaled(torch::Tensor x, torch::Tensor scale) {
  const int n = x.numel();
  float* y = nullptr;
  ALLOCATE
  scale_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), scale.data_ptr<float>(), y, n, x.size(1));
  RETURN
}
"""
COPY = "return torch::from_blob(y, x.sizes(), x.options()).clone();"
# What is allocated, and what is returned -> whether it is a leak.
WAYS = {
    "in every call": ("cudaMalloc(&y, n * 4);", COPY, True),
    "freed": ("cudaMalloc(&y, n * 4);", f"auto made = {COPY[7:]} cudaFree(y); return made;", False),
    "owned by the result": (
        "cudaMalloc(&y, n * 4);",
        "return torch::from_blob(y, x.sizes(), [](void* memory) { cudaFree(memory); }, x.options());",
        False,
    ),
    "kept for later calls": ("if (!workspace) cudaMalloc(&workspace, 1 << 20); y = workspace;", COPY, False),
    "kept, and one in every call": (
        "if (!workspace) cudaMalloc(&workspace, 1 << 20);\n  cudaMalloc(&y, n * 4);",
        COPY,
        True,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_memory(judged, way):
    """Is exactly the memory reported that each call leaves behind, at its line?"""
    allocate, returned, leaks = WAYS[way]
    cuda = SOURCE.replace("ALLOCATE", allocate).replace("RETURN", returned)
    head = (
        "from torch.utils.cpp_extension import load_inline\n"
        f"source = r'''{cuda}'''\n"
        "module = load_inline('leaks', 'torch::Tensor scaled(torch::Tensor x, torch::Tensor scale);', source, "
        "functions=['scaled'])\n"
    )
    verdict = judged(
        forward("return module.scaled(x, self.scale)").replace("\nclass ModelNew", f"\n{head}\nclass ModelNew")
    )
    assert (verdict.outcome, verdict.reason) == ((Outcome.failed, Reason.leak) if leaks else (Outcome.passed, None))
    if leaks:
        evidence = verdict.stage("safe").evidence[0]
        assert "cudaMalloc(&y" in (evidence.text or "")
