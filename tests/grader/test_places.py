"""Where the cause of a failure stands, where the source tells it: are the lines those that a reader would point to?"""

import pytest

from grader import places
from grader.verdict import Reason, Stage, StageName, Status

KERNEL = """__global__ void k(float* y, int n) {
    int i = threadIdx.x;
    while (i < n) {
        y[i] = 1;
    }
    for (int half = 128; half >= 0; half /= 2) {
        y[half] += 1;
    }
}
"""
PYTHON = """def forward(self, x):
    done = 0
    while done < 3:
        y = kernels.run(x)
    return y
"""
PARTED = """    for (int s = 64; s > 0; s /= 2) {
        if (threadIdx.x < s) {
            a[threadIdx.x] += a[threadIdx.x + s];
            __syncthreads();
        }
    }
    __syncthreads();
    if (lane < 16) v += __shfl_down_sync(0xffffffff, v, 16);
"""
LAUNCH = """    int H = x.size(0), OH = H - K, OW = W - K;
    auto y = torch::empty({OH, OW}, x.options());
    int blocks = (y.numel() + 255) / 256;
    dim3 threads(OW, OH);
    k<<<blocks, threads>>>(y.data_ptr<float>());
"""
BOUND = """module = load_inline(
    name="m",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["runs"],
)
"""


def found(reason: Reason, message: str, source: str, line: int | None):
    return places.of(Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message), source, line)


@pytest.mark.parametrize(
    "reason, message, source, line, lines, says",
    [
        (Reason.kernel_timeout, "", KERNEL, 4, (3,), "changes `i` or `n`"),
        (Reason.kernel_timeout, "", KERNEL, 7, (6,), "the half of 0 is 0"),
        (Reason.kernel_timeout, "", "void f() {\n  int a;\n  for (int i = 0; i < n; i++) a += i;\n  for (int s = 8; s >= 0; s >>= 1) a += s;\n}\n", 1, (4,), "the half of 0"),
        (Reason.kernel_timeout, "", "for (int i = 8; i < n; i -= 2)\n    y[i] = 1;\n", 2, (1,), "For which values of `i`"),
        (Reason.timeout, "", PYTHON, 4, (3,), "changes `done`"),
        (Reason.barrier_divergence, "waits at the __syncthreads() in line 4, while the other waits in line 7", PARTED, 7, (2, 4), "inside the `if` of line 2"),
        (Reason.warp_divergence, "in line 8 for lane 16", PARTED, 8, (8,), "an `if` stands before"),
        (Reason.launch_error, "its grid (0, 1, 1) has no block along x", LAUNCH, 5, (1,), "come out as 0"),
        (Reason.launch_error, "its block (42, 38, 1) has 1,596 threads", LAUNCH, 5, (4,), "does not fit"),
        (Reason.undeclared_function, "functions= names `runs`, which cpp_sources does not declare.", BOUND, 1, (3, 5), "the same function"),
        (Reason.missing_cpp_sources, "functions= names `run`, but cpp_sources is empty", BOUND, 1, (3,), "missing here"),
        (Reason.uninitialized, "updates element 0 of `sum`, which nothing has written.", "__shared__ float sum;\n\natomicAdd(&sum, v);", 3, (1, 3), "missing between"),
        (Reason.illegal_address, "writes through a null pointer", "float* out = nullptr;\nk<<<1, 1>>>(out);", 2, (1,), "nothing sets it"),
        (Reason.crash, "died of a segmentation fault", "int* p = nullptr;\nint n = p[0];", None, (1, 2), "`p` is null"),
        (Reason.out_of_memory, "no memory", "auto a = torch::empty({3}, o);\nauto b = torch::empty({N, 10000000}, o);", 2, (2,), "made here"),
    ],
)
def test_lines(reason, message, source, line, lines, says):
    """Are these lines named, and does the sentence say why?"""
    place = found(reason, message, source, line)
    assert place is not None and place.lines == lines and says.lower() in place.words.lower()


@pytest.mark.parametrize("reason", [Reason.wrong_values, Reason.race, Reason.kernel_timeout, Reason.launch_error, Reason.barrier_divergence])
def test_nothing_is_made_up(reason):
    """Where the source does not tell it, is nothing named?"""
    assert found(reason, "line 1", "float x = 1;\n", 1) is None
