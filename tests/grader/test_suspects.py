"""Where no line is known to be wrong: are the right lines shown to a student, and few of them?"""

import pytest

from grader import suspects
from grader.verdict import Evidence, Reason, Stage, StageName, Status

SOURCE = '''"""exp and half are words of this docstring."""
import torch
code = """
constexpr int THREADS = 192;
__device__ float helper(float v) {
    return expf(v);
}
__global__ void k(const float* x, const float* bias, float* y, int C, int W, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = i / W % C;
    float sum = 0.0f;
    for (int j = 0; j < C; ++j) sum += x[c * W + j];
    y[i] = sum;  // stored
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int blocks = total / 256;
    k<<<blocks, 256>>>(x.data_ptr<float>());
    return y;
}
"""
class ModelNew(nn.Module):
    def forward(self, x):
        z = kernels.run(x)
        return z.half()
'''
AT = {text.strip(): number for number, text in enumerate(SOURCE.splitlines(), 1)}


def lines(reason: Reason, pattern: str | None = None, message: str = "") -> list[int]:
    stage = Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message, evidence=[Evidence(pattern=pattern)])
    return suspects.of(stage, SOURCE)[1]


@pytest.mark.parametrize(
    "reason, pattern, wrong, right",
    [
        (Reason.wrong_values, "off by a constant in each channel", "float sum = 0.0f;", "int c = i / W % C;"),
        (Reason.wrong_values, "every batch item holds batch item 0's values", "for (int j = 0; j < C; ++j) sum += x[c * W + j];", "if (i >= total) return;"),
        (Reason.wrong_values, "rows and columns are swapped in memory", "int c = i / W % C;", "if (i >= total) return;"),
        (Reason.not_written, "every element from number 512 on", "int blocks = total / 256;", "float sum = 0.0f;"),
        (Reason.non_finite, None, "return expf(v);", '"""exp and half are words of this docstring."""'),
        (Reason.wrong_shape, None, "auto y = torch::empty_like(x);", "y[i] = sum;  // stored"),
        (Reason.wrong_dtype, None, "return z.half()", "y[i] = sum;  // stored"),
        (Reason.wrong_type, None, "return z.half()", "return y;"),
    ],
)
def test_lines(reason, pattern, wrong, right):
    """Is the line that such a failure comes from among those shown, and one that has nothing to do with it not?"""
    shown = lines(reason, pattern)
    assert AT[wrong] in shown and AT[right] not in shown and len(shown) <= suspects.SHOWN


def test_nothing_to_suspect():
    """Are no lines shown where none can be named?"""
    assert lines(Reason.interrupted) == []
    assert suspects.returns("no python (") == []


def test_result_stores():
    """Are the lines found on which kernels write through what they may write to, and no others?"""
    source = "\n__global__ void k(const float* x, float* y, int n) {\n  float s = x[0];\n  if (s == y[1]) s = 2;\n  y[n] = s;\n  y[0] += 1;\n  atomicAdd(&y[2], s);\n}\nvoid f(float* y) { y[0] = 1; }\n"
    assert suspects.result_stores(source) == [5, 6, 7]


def test_forward_without_return():
    """Is all of forward shown where nothing is returned?"""
    assert suspects.returns("class ModelNew:\n    def forward(self, x):\n        f(x)\n") == [2, 3]


def test_raised_in_cpp():
    """Is the TORCH_CHECK found whose words were raised, and none whose words were not?"""
    source = 'void f(int n) {\n  TORCH_CHECK(n == 128, "the batch must be 128, not ", n);\n  TORCH_CHECK(n > 0, "nothing to do here");\n}\n'
    stage = Stage(name=StageName.correct, status=Status.failed, reason=Reason.exception, message="RuntimeError: the batch must be 128, not 1")
    assert suspects.also(stage, source)[1] == [2]
