"""Where no line is known to be wrong: are the right lines shown to a student, and few of them?"""

import pytest

from grader.diagnosis import source_lines, suspects, suspicions
from grader.verdict import CaseResult, Evidence, Reason, Stage, StageName, Status

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
    stage = Stage(
        name=StageName.correct,
        status=Status.failed,
        reason=reason,
        message=message,
        evidence=[Evidence(pattern=pattern)],
    )
    return suspects.of(stage, SOURCE)[1]


@pytest.mark.parametrize(
    "reason, pattern, wrong, right",
    [
        (Reason.wrong_values, "off by one constant per channel", "float sum = 0.0f;", "int c = i / W % C;"),
        (
            Reason.wrong_values,
            "every batch item holds batch item 0's values",
            "for (int j = 0; j < C; ++j) sum += x[c * W + j];",
            "if (i >= total) return;",
        ),
        (
            Reason.wrong_values,
            "rows and columns are swapped in memory",
            "int c = i / W % C;",
            "if (i >= total) return;",
        ),
        (Reason.not_written, "elements 512 and up", "int blocks = total / 256;", "float sum = 0.0f;"),
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
    assert source_lines.returns("no python (") == []


def test_result_stores():
    """Are the lines found on which kernels write through what they may write to, and no others?"""
    source = (
        "\n"
        "__global__ void k(const float* x, float* y, int n) {\n"
        "  float s = x[0];\n"
        "  if (s == y[1]) s = 2;\n"
        "  y[n] = s;\n"
        "  y[0] += 1;\n"
        "  atomicAdd(&y[2], s);\n"
        "}\n"
        "void f(float* y) { y[0] = 1; }\n"
    )
    assert source_lines.result_stores(source) == [5, 6, 7]


def test_what_feeds_a_store():
    """Do the lines that set what is stored come in order of distance, atomics and a called function's return among
    them?
    """
    source = (
        "\n"
        "__device__ int half_of(int n) {\n"
        "  int m = n / 2;\n"
        "  return m;\n"
        "}\n"
        "__device__ int unused(int n) { return n; }\n"
        "__global__ void k(const int* x, int* y) {\n"
        "  __shared__ int own[8];\n"
        "  own[threadIdx.x] = 0;\n"
        "  const int bin = half_of(x[threadIdx.x]);\n"
        "  atomicAdd(&own[bin], 1);\n"
        "  y[threadIdx.x] = own[threadIdx.x];\n"
        "}\n"
    )
    stores = source_lines.result_stores(source)
    assert source_lines.FINDERS[source_lines.FEEDS](source, stores) == [12, 9, 11, 10, 4, 3]


def test_forward_without_return():
    """Is all of forward shown where nothing is returned?"""
    assert source_lines.returns("class ModelNew:\n    def forward(self, x):\n        f(x)\n") == [2, 3]


def test_raised_in_cpp():
    """Is the TORCH_CHECK found whose words were raised, and none whose words were not?"""
    source = (
        "void f(int n) {\n"
        '  TORCH_CHECK(n == 128, "the batch must be 128, not ", n);\n'
        '  TORCH_CHECK(n > 0, "nothing to do here");\n'
        "}\n"
    )
    stage = Stage(
        name=StageName.correct,
        status=Status.failed,
        reason=Reason.exception,
        message="RuntimeError: the batch must be 128, not 1",
    )
    assert suspects.also(stage, source)[1] == [2]


def case(name: str, right: bool) -> CaseResult:
    return CaseResult(name=name, status=Status.passed if right else Status.failed)


@pytest.mark.parametrize(
    "reason, source, wrong",
    [
        (Reason.wrong_values, "constexpr int T = 192;\nfor (int s = T / 2; s > 0; s /= 2) a[t] += a[t + s];\n", [1, 2]),
        (Reason.wrong_values, "constexpr int T = 256;\nfor (int s = T / 2; s > 0; s /= 2) a[t] += a[t + s];\n", None),
        (Reason.wrong_values, "float var = squares / n - m * m;\n", [1]),
        (Reason.wrong_values, "x = nn.Parameter(torch.randn(3))\nreturn y + torch.rand_like(y)\n", [2]),
        (
            Reason.constant_output,
            "__global__ void k(const float* b, float* y) {\n    int i = threadIdx.x;\n    y[i] = b[0];\n}\n",
            [3],
        ),
        (
            Reason.constant_output,
            (
                "__global__ void k(const float* b, float* y) {\n"
                "    int i = threadIdx.x;\n"
                "    y[i] = b[i] * 0;\n"
                "    float s = 1;\n"
                "}\n"
            ),
            None,
        ),
        (
            Reason.output_aliases_input,
            "class ModelNew(nn.Module):\n    def forward(self, x):\n        y = k.run(x)\n        return x.view(-1)\n",
            [4],
        ),
        (
            Reason.wrong_shape,
            "    auto a = torch::empty({1}, o);\n    auto y = torch::empty({2}, o);\n    return y;\n",
            [2],
        ),
        (Reason.input_modified, "    auto y = x;\n    auto z = torch::empty_like(x);\n", [1]),
    ],
)
def test_lines_that_are_wrong(reason, source, wrong):
    """Where the source itself shows what is wrong, are just those lines called wrong, and none where it does not?"""
    stage = Stage(name=StageName.correct, status=Status.failed, reason=reason, message="", evidence=[Evidence()])
    stage.cases = [case("large mean", False), case("small", True)]
    words, shown = suspects.of(stage, source)
    if wrong is None:
        assert words not in suspicions.SURE
    else:
        assert shown == wrong and (words in suspicions.SURE or len(shown) == 1)


def test_sums_that_take_in_too_little():
    """Is a sum accused only where one pixel comes out right and more do not?"""
    source = "__global__ void k(float* y) {\n    for (int c = 0; c < C; c++) mean += x[c * P];\n}\n"
    stage = Stage(
        name=StageName.correct,
        status=Status.failed,
        reason=Reason.wrong_values,
        message="",
        evidence=[Evidence(pattern="each channel of each batch item is shifted and scaled by its own amounts")],
    )
    stage.cases = [case("one pixel", True), case("prime sizes", False)]
    assert suspects.of(stage, source)[1] == [2] and suspects.of(stage, source)[0] in suspicions.SURE
    stage.cases.append(case("one value a group", False))
    assert suspects.of(stage, source)[0] not in suspicions.SURE
    stage.cases.pop()
    stage.cases[0].status = Status.failed
    assert suspects.of(stage, source)[0] not in suspicions.SURE


POOL = """__global__ void given(const float* x, float* y) {
    float sum = 0.0f;
    sum += x[threadIdx.x];
    y[threadIdx.x] = sum;
}
__global__ void pool(const float* x, const float* scale, float* y, int C, int W) {
    const int i = threadIdx.x, py = i / W;
    const int row = py * W;
    const float unused = 3.0f;
    float best = -INFINITY;
    for (int dx = 0; dx < W; ++dx) best = fmaxf(best, x[row + dx]);
    y[i] = best * scale[i % C];
}
"""


def wrong(message: str = "The values are wrong", pattern: str | None = None) -> Stage:
    return Stage(
        name=StageName.correct,
        status=Status.failed,
        reason=Reason.wrong_values,
        message=message,
        evidence=[Evidence(pattern=pattern)],
    )


def test_what_goes_into_a_store():
    """Are the stores shown with the lines that set what goes into them, directly or not, and no others?"""
    words, shown = suspects.of(wrong(), POOL)
    assert words == "Check what is stored and how it is computed:" and shown == [2, 3, 4, 7, 8, 10, 11, 12]
    assert suspects.of(wrong(), POOL, {1, 2, 3, 4, 5})[1] == [7, 8, 10, 11, 12]


def test_nearest_first():
    """If there are too many, are those left out that are furthest from what is stored?"""
    chain = "\n".join(f"    float v{n} = v{n - 1} * 2;" for n in range(1, 12))
    source = f"__global__ void k(const float* x, float* y) {{\n    float v0 = x[0];\n{chain}\n    y[0] = v11;\n}}\n"
    assert suspects.of(wrong(), source)[1] == list(range(7, 15))


def test_given_lines_come_last():
    """Are lines that a student was given suspect only where no other line is, whichever suspicion names that?"""
    rows = wrong(pattern="off by one constant per channel")
    assert suspects.of(rows, POOL, {1, 2, 3, 4, 5})[1] == [12] and suspects.of(rows, POOL)[1] == [2, 4, 12]
    assert suspects.of(rows, POOL, set(range(1, 14)) - {9})[1] == [2, 4, 12]


def test_a_nan_that_is_lost():
    """Where NaN was expected and a number came out, are the functions shown that drop one, and not otherwise?"""
    assert suspects.of(wrong("The values are wrong: 3 of 8 values; at [0] expected NaN, got 1."), POOL)[1] == [11]
    assert suspects.of(wrong("The values are wrong: 3 of 8 values; at [0] expected 1, got NaN."), POOL)[1] != [11]


def test_a_lone_guess_is_not_accused():
    """Is a single line that only might be wrong left without an arrow, and one in which the failure is made not?"""
    assert not suspects.accused(wrong(), *suspects.of(wrong(), "__global__ void k(float* y) {\n    y[i] = best;\n}\n"))
    shape = Stage(
        name=StageName.correct, status=Status.failed, reason=Reason.wrong_shape, message="", evidence=[Evidence()]
    )
    assert suspects.accused(shape, *suspects.of(shape, "    auto y = torch::empty({2}, o);\n    return y;\n"))


OF_HALVES = '''
code = """
__global__ void k(const __nv_fp8_e4m3* w, const __half* x, float* y, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += __half2float((__half)w[i] * x[i]);
    y[0] = sum;
}
"""
'''


@pytest.mark.parametrize(
    "old, new, line",
    [
        ("", "", 5),
        ("(__half)w[i] * x[i]", "__hmul((__half)w[i], x[i])", 5),
        ("__half2float((__half)w[i] * x[i])", "__half2float(__float2half((float)w[i] * __half2float(x[i])))", 5),
        ("__half2float((__half)w[i] * x[i])", "(float)w[i] * __half2float(x[i])", 5),
    ],
)
def test_products_of_halves_overflow(old, new, line):
    """Where NaN comes out, and nothing divides: are products of halves shown by themselves, else what is stored?"""
    stage = Stage(
        name=StageName.correct, status=Status.failed, reason=Reason.non_finite, message="", evidence=[Evidence()]
    )
    words, found = suspects.of(stage, OF_HALVES.replace(old, new) if old else OF_HALVES)
    halves = "__half)" in (new or OF_HALVES) or "__hmul" in new or "__float2half" in new
    assert line in found and (found == [line]) is halves and ("largest half" in words) is halves


OF_LANES = '''
code = """
__global__ void k(const int* b, int* y) {
    const unsigned peers = __match_any_sync(0xffffffff, b[threadIdx.x]);
    const int leader = __ffs(peers);
    if (threadIdx.x % 32 == leader) atomicAdd(&y[b[threadIdx.x]], __popc(peers));
}
"""
'''


@pytest.mark.parametrize("wrong", [True, False])
def test_the_first_bit_is_bit_1(wrong):
    """Is a lane shown that is one too large, as __ffs counts from 1, and none where 1 is subtracted?"""
    stage = Stage(
        name=StageName.correct, status=Status.failed, reason=Reason.wrong_values, message="", evidence=[Evidence()]
    )
    words, found = suspects.of(stage, OF_LANES if wrong else OF_LANES.replace("(peers);", "(peers) - 1;", 1))
    assert ("__ffs" in words) is wrong and (found == [5]) is wrong


def test_a_path_is_no_division():
    """Is the slash in a path of an #include taken for no division, also where the first kernel is a template?"""
    code = "#include <c10/cuda/CUDAStream.h>\ntemplate <int N>\n__global__ void k(float* y) { y[0] = y[1] / y[2]; }"
    stage = Stage(
        name=StageName.correct, status=Status.failed, reason=Reason.non_finite, message="", evidence=[Evidence()]
    )
    assert suspects.of(stage, f'code = """\n{code}\n"""\n')[1] == [4]
