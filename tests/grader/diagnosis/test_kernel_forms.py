"""Where the form of a kernel shows what its values show too: is the line named, and not where the form is another?"""

import pytest

from grader.diagnosis import suspects, suspicions
from grader.verdict import Evidence, Launch, Reason, Stage, StageName, Status

ROWS = """__global__ void k(const float* x, float* y, int columns) {
    y += blockIdx.x * columns;
    for (int c = threadIdx.x; c < columns; c += 128) y[c] = x[c];
}
"""
TAIL = """__global__ void k(const float* x, float* y, int n) {
    for (int c = 4 * threadIdx.x; c + 3 < n; c += 512) {
        for (int k = 0; k < 4; k++) y[c + k] = x[c + k];
    }
}
"""
ONE_EACH = """__global__ void k(const float* x, float* y, int columns) {
    int c = threadIdx.x;
    if (c < columns) y[blockIdx.x * columns + c] = x[blockIdx.x * columns + c];
}
"""
SHUFFLE = """__device__ float scan_warp(float v) {
    for (int d = 1; d < 32; d *= 2) v += __shfl_up_sync(0xffffffff, v, d);
    return v;
}
"""
HALF = """__global__ void k(const float* x, float* y, int n) {
    __half sum = __float2half(0.0f);
    for (int i = 0; i < n; ++i) sum = __float2half(__half2float(sum) + x[i]);
    y[0] = __half2float(sum);
}
"""
ONE_BLOCK = """__global__ void k(float* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] += 1;
}
void run(float* y, int n) { k<<<1, 1024>>>(y, n); }
"""
IN_PLACE = """void scan(float* x, float* y, int n) {
    auto sums = torch::empty({n}, options);
    part<<<n, 256>>>(x, y, sums.data_ptr<float>());
    scan(sums.data_ptr<float>(), sums.data_ptr<float>(), n / 256);
}
"""
BACKWARD = """class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return module.prefix_sum(x)

    @staticmethod
    def backward(ctx, gy):
        return module.prefix_sum(gy)
"""


def show(source: str, pattern: str, reason: Reason = Reason.wrong_values, **fields) -> tuple[bool, list[int]]:
    """Return whether the lines named are certain, and the lines."""
    name = StageName.gradient if reason is Reason.wrong_gradient else StageName.correct
    evidence = Evidence(pattern=pattern, **fields)
    stage = Stage(name=name, status=Status.failed, reason=reason, message="", evidence=[evidence])
    words, lines = suspects.of(stage, source)
    return words in suspicions.SURE, lines


def test_rows_that_all_blocks_read():
    """Is the line marked that moves the output alone, and not where the input is moved or indexed by the block?"""
    assert show(ROWS, "every row holds row 0's values") == (True, [2])
    for moved in (
        ROWS.replace("= x[c]", "= x[blockIdx.x * columns + c]"),
        ROWS.replace("    y +=", "    x += n; y +="),
    ):
        assert not show(moved, "every row holds row 0's values")[0]


def test_a_loop_that_leaves_out_the_rest():
    """Is the loop marked that ends where fewer than four are left, and not one that takes one at a time?"""
    assert show(TAIL, "last 3 columns", Reason.not_written) == (True, [2])
    assert show(TAIL.replace("c + 3 < n", "c < n"), "last 3 columns", Reason.not_written) == (False, [2, 3])


def test_one_element_for_each_thread():
    """Are index and store marked where what is beyond a block's threads is missing, and not beyond another number?"""
    launches = [Launch(kernel="k", grid=(3, 1, 1), block=(1024, 1, 1))]
    assert show(ONE_EACH, "columns 1,024 and up", Reason.not_written, launches=launches) == (True, [2, 3])
    assert not show(ONE_EACH, "columns 1,000 and up", Reason.not_written, launches=launches)[0]


def test_lanes_that_get_their_own_value():
    """Is the shuffle marked that is added in every lane, and not one under a condition?"""
    assert show(SHUFFLE, "first 31 elements of every 32") == (True, [2])
    tested = SHUFFLE.replace(") v +=", ") if (lane >= d) v +=")
    assert not show(tested, "first 31 elements of every 32")[0]


@pytest.mark.parametrize("error, certain", [(0.0016, True), (1.0, False)])
def test_sums_of_16_bits(error, certain):
    """Are the sum and its declaration marked where the values are nearly right, and not where they are far off?"""
    for sum in (
        "sum = __float2half(__half2float(sum) + x[i]);",
        "sum = __hadd(sum, __float2half(x[i]));",
        "sum += x[i];",
    ):
        source = HALF.replace("sum = __float2half(__half2float(sum) + x[i]);", sum)
        found = show(source, "", tolerance=0.0015, max_error=error)
        assert found[0] is certain and (found[1] == [2, 3] or not certain)


def test_what_a_host_function_leaves_out():
    """Is the launch of one block shown, or the last call with a tensor whose result nothing reads?"""
    assert show(ONE_BLOCK, "elements 262,400 and up") == (False, [4])
    assert show(ONE_BLOCK.replace("<<<1,", "<<<n,"), "elements 262,400 and up")[1] != [4]
    assert show(IN_PLACE, "a single element") == (False, [4])
    added = IN_PLACE.replace("n / 256);", "n / 256);\n    add<<<n, 256>>>(y, sums.data_ptr<float>());")
    assert show(added, "a single element")[1] != [4]


def test_a_backward_that_calls_the_function_of_forward():
    """Is the return of backward marked that gives forward's result for the gradient, and no other one?"""
    assert show(BACKWARD, "", Reason.wrong_gradient) == (True, [8])
    assert not show(BACKWARD.replace("(gy)", "(gy.flip(0)).flip(0)"), "", Reason.wrong_gradient)[0]
