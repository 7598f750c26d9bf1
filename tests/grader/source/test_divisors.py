"""Is the divisor of a division by zero named, with the line that computes it?"""

import pytest

from grader.source.divisors import find_zero_divisor

TEXT = """__global__ void k(const float* x, float* y, int n, int part, int G) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    BEFORE
    LINE
}
void run(torch::Tensor x, torch::Tensor y) {
    const int C = x.size(1), G = 4;
    int per_block = C / 32;
    k<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), C, PART, x.size(1) - G);
}
"""


def find(line: str, before: str = "", part: str = "per_block"):
    code = TEXT.replace("LINE", line).replace("BEFORE", before).replace("PART", part)
    return find_zero_divisor("Thread (0, 0, 0) divides an integer by zero.", code.split("\n"), 4)


@pytest.mark.parametrize(
    "line, before, words, lines",
    [
        (
            "int g = i % size + i / size;", "int size = n / G;",
            "`size` is 0 here: line 3 computes it as `n / G`, which rounds down to 0 where `n` is less than `G`.",
            (3, 4),
        ),
        (
            "y[i / (int64_t)part] = x[i];", "",
            "`part` is 0 here: line 8 computes it as `C / 32`, which rounds down to 0 where `C` is less than 32.",
            (8, 4),
        ),
        (
            "int g = i / G;", "",
            "`G` is 0 here: line 9 computes it as `x.size(1) - G`, which is 0 where `x.size(1)` is `G`.", (9, 4),
        ),
        ("int g = i % (n >> 3);", "", "`n >> 3` is 0 here: it rounds down to 0 where `n` is less than 8.", (4,)),
        ("int g = i / sizes[c];", "", "`sizes[c]` is 0 here. Do not divide by it where it is 0.", (4,)),
        (
            "int g = i / rest;", "int rest = n % 32;",
            "`rest` is 0 here: line 3 computes it as `n % 32`, which is 0 where `n` is a multiple of 32.", (3, 4),
        ),
        # of two divisors, the one that can become 0
        ("int g = i / n % size;", "int size = n / 64;", "`size` is 0 here: line 3 computes it as `n / 64`", (3, 4)),
        ("int g = i / a + i / b;", "", "The divisor is `a` or `b`: find out which of them is 0.", (4,)),
    ],
)  # fmt: skip
def test_the_divisor(line, before, words, lines):
    place = find(line, before)
    assert place is not None and words in place.words and place.lines == lines


def test_an_argument_of_the_launch_may_be_the_value():
    place = find("int g = i / part;", part="(C + 1) / 64")
    assert place is not None and "line 9 computes it as `(C + 1) / 64`, which rounds down." in place.words


@pytest.mark.parametrize("line", ["float f = x[i] / scale;", "int g = i / blockDim.x;", "int g = i / 4;", "y[i] = 0;"])
def test_no_divisor_is_made_up(line):
    assert find(line, "const float scale = x[0];") is None
