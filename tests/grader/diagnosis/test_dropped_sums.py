"""Sums that a kernel works out and uses nowhere: are they found, and none in code that is sound?"""

import json
from pathlib import Path

import pytest

from grader.diagnosis import dropped_sums
from grader.source.cpp import Text
from grader.verdict import Evidence, Reason, Stage, StageName, Status

ROOT = Path(__file__).resolve().parents[3]
KERNEL = """
__device__ float whole(float v) { return v; }
template <typename T>
__global__ void centre(const T* x, T* y, int n) {
    x += blockIdx.x * n;
    T sum = 0, most = x[0];  // of the row
    #pragma unroll 4
    for (int i = threadIdx.x; i < n; i += 32) {
        const T v = x[i];
        sum += v;
        if (v > most) most = v;
    }
    sum = whole(sum) / n;
    for (int i = threadIdx.x; i < n; i += 32) {
        y[blockIdx.x * n + i] = (x[i] - sum) / most;
    }
}
"""
STORE = "y[blockIdx.x * n + i] = (x[i] - sum) / most;"


def unused(source: str) -> dict[str, list[str]]:
    """The variables that a kernel uses nowhere, with the lines that set them."""
    text = Text(source)
    (kernel,) = (function for function in text.functions.values() if function.kernel)
    return {
        name: [source.split("\n")[n - 1].strip() for n in lines]
        for name, lines in dropped_sums.unused(text, kernel).items()
    }


def place(source: str, reason: Reason = Reason.wrong_values, name: StageName = StageName.correct):
    return dropped_sums.of(
        Stage(name=name, status=Status.failed, reason=reason, message="", evidence=[Evidence()]), source
    )


@pytest.mark.parametrize(
    "edits, names",
    [
        ([("- sum", "")], {"sum"}),
        # one goes into the other, and both into nothing
        ([("- sum", ""), ("sum = whole(sum) / n;", "T mean = 0; mean += sum;")], {"sum", "mean"}),
        ([("- sum", ""), ("T sum = 0, most", "T sum; sum = 0; T most")], {"sum"}),
        ([("- sum", ""), ("T sum = 0, most = x[0];", "T sum, most; sum = most = x[0];")], {"sum"}),
        ([("- sum", ""), ("if (v > most)", "if (sum > most)")], set()),  # a condition uses it
        ([("- sum", ""), ("T sum", "int sum")], set()),  # a count that is left over is no sign of anything
        ([("- sum", ""), ("sum = whole(sum) / n;", ""), ("sum += v;", "sum = v;")], set()),  # no sum
        ([("- sum", "- whole(sum)")], set()),
        ([("- sum", ""), ("sum = whole(sum) / n;", "store(&sum);")], set()),
        ([("- sum", ""), ("sum = whole(sum) / n;", "while (sum > 0) n /= 2;")], set()),
        ([("T sum = 0, most", "T& sum = y[0]; T most"), ("- sum", "")], set()),  # it writes elsewhere
        ([], set()),
    ],
)
def test_unused(edits, names):
    """Is a sum found that goes into nothing, and none that something reads?"""
    source = KERNEL
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    assert set(unused(source)) == names


def test_lines():
    """Are the lines given that set it?"""
    assert unused(KERNEL.replace("- sum", "")) == {
        "sum": ["T sum = 0, most = x[0];  // of the row", "sum += v;", "sum = whole(sum) / n;"]
    }


def test_the_store_that_leaves_it_out():
    """Is the kernel's one store marked, with the line that works the sum out beside it?"""
    source = KERNEL.replace("- sum", "")
    found = place(source)
    assert [source.split("\n")[n - 1].strip() for n in found.lines] == [STORE.replace("- sum", "")]
    assert [source.split("\n")[n - 1].strip() for n in found.beside] == [
        "sum = whole(sum) / n;"
    ] and "`sum` is" in found.words


@pytest.mark.parametrize(
    "source, reason",
    [
        (KERNEL, Reason.wrong_values),
        (KERNEL.replace("- sum", ""), Reason.out_of_bounds),
        # which of the two stores?
        (KERNEL.replace("- sum", "").replace("    x += ", "    y[0] = 1;\n    x += "), Reason.wrong_values),
        # not forward's kernel
        (KERNEL.replace("- sum", "").replace("const T* x", "const T* grad_x"), Reason.wrong_values),
    ],
)
def test_no_store_is_accused(source, reason):
    """Is nothing marked where the sum is used, where values are not what is wrong, and where it could be another
    line?
    """
    assert place(source, reason) is None


def test_only_backward_kernels():
    """Where a gradient is wrong, is a store of backward's kernels marked and none of forward's?"""
    source = KERNEL.replace("- sum", "") + KERNEL.replace("centre", "centre_backward")
    assert place(source, Reason.wrong_gradient, StageName.gradient) is None
    source = KERNEL + KERNEL.replace("centre", "centre_backward").replace("- sum", "")
    assert place(source, Reason.wrong_gradient, StageName.gradient).lines[0] > KERNEL.count("\n")


def test_sound_kernels():
    """Of all kernels of the references, their steps and the lessons: has none such a sum?"""
    sources = {
        str(path): path.read_text(encoding="utf-8")
        for path in [*ROOT.glob("kernels_ref/**/*.py"), *ROOT.glob("benchmarks/validate/*.cu")]
    }
    for path in ROOT.glob("lessons/*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources |= {
            f"{path} {number}": "".join(cell["source"])
            for number, cell in enumerate(cells)
            if cell["cell_type"] == "code" and "____" not in "".join(cell["source"])  # a blank is not a kernel yet
        }
    texts = {name: Text(source) for name, source in sources.items() if "__global__" in source}
    kernels = [
        (name, text, function)
        for name, text in texts.items()
        for function in text.functions.values()
        if function.kernel
    ]
    assert len(kernels) > 100
    assert [(name, kernel.name) for name, text, kernel in kernels if dropped_sums.unused(text, kernel)] == []


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ("y[i] = x[i];", "Line 6 fills `scale`, but `k` never reads it. Find the formula that needs `scale`."),
        ("y[i] = x[i] * scale[0];", ""),
        ("fold(scale); y[i] = x[i];", ""),  # may read it
        ("atomicAdd(&scale[0], 1.0f); y[i] = x[i];", ""),
    ],
)
def test_a_shared_array_that_nothing_reads(read, found):
    """Is a shared array that is filled and never read named, and one that may be read not?"""
    source = f"""
__global__ void k(const float* x, const float* scales, float* y) {{
    __shared__ float scale[32], other[32];
    int i = threadIdx.x;
    other[i] = 1.0f;
    scale[i] = scales[i];
    __syncthreads();
    {read}
    y[i] += other[i];
}}
"""
    named = place(source)
    assert (named.words if named else "") == found
