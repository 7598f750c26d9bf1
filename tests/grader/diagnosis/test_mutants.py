"""Many edits in one build: does the rewritten code do what the original does, and each edit what it says?"""

import ast
import ctypes
from pathlib import Path

import pytest
import torch

import simt
from grader.diagnosis import mutants, operator_mutants
from grader.diagnosis.mutants import KINDS, schema

ROOT = Path(__file__).resolve().parents[3]
HEAD = "torch::Tensor run(torch::Tensor x);"
SOURCE = """
__device__ float twice(float v) { return v * 2.0f; }
__global__ void k(const float* x, float* y, int C, int W, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = i / W % C;
    int w = i % W;
    float sum = 0.0f;
    for (int j = 0; j <= w; ++j) sum += x[c * W + j] - 1.0f;
    y[i] = twice(sum);
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::zeros_like(x);
    int C = x.size(0), W = x.size(1), total = C * W;
    k<<<(total + 7) / 8, 8>>>(x.data_ptr<float>(), y.data_ptr<float>(), C, W, total);
    return y;
}
"""
# A line, the kind of edit, the texts that its edits amount to, written out by hand.
BY_HAND = [
    (5, "comparison", ["i > total", "i < total", "i <= total"]),
    (9, "comparison", ["j < w", "j > w", "j >= w"]),
    (9, "term", ["x[c * W + j] + 1.0f"]),
    (6, "operator", ["i * W % C", "i % C"]),
    (7, "operator", ["int w = i / W", "int w = i;"]),
]
ORIGINAL = {5: "i >= total", 9: "j <= w", 6: "i / W % C", 7: "int w = i % W"}


def run(source: str, x: torch.Tensor, number: int = 0):
    """The output with an edit in force, or the reason for which the kernel stopped."""
    module = simt.load_inline("mutants", HEAD, source, functions=["run"])
    if "grader_mutant" in source:
        ctypes.c_int.in_dll(ctypes.CDLL(module.__file__), "grader_mutant").value = number
    try:
        with simt.run(guard="end", seconds=2.0):
            return module.run(x.clone())
    except simt.KernelError as error:
        return error.reason


def same(a, b) -> bool:
    return a == b if isinstance(a, str) or isinstance(b, str) else torch.equal(a, b)


def edited(line: int, text: str, kind: str) -> str:
    """The source with one line edited by hand."""
    lines: list[str] = [*SOURCE.split("\n")]
    old = "x[c * W + j] - 1.0f" if kind == "term" else ORIGINAL[line]
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, text.rstrip(";"))
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("line, kind, texts", BY_HAND)
def test_edits_are_those_written_by_hand(line, kind, texts):
    """Does some edit of that kind in that line give what the same edit, made in the text, gives?"""
    x = torch.arange(15.0).view(3, 5)
    text, made = schema(SOURCE)
    numbers = [one.number for one in made if one.line == line and one.kind == kind]
    results = [run(text, x, number) for number in numbers]
    assert numbers and any(not same(result, run(SOURCE, x)) for result in results)
    for other in texts:
        wanted = run(edited(line, other, kind), x)
        assert any(same(result, wanted) for result in results), other


def test_nothing_changes_without_an_edit():
    """With number 0, is the result the original's, bit for bit?"""
    x = torch.randn(7, 9)
    assert torch.equal(run(schema(SOURCE)[0], x), run(SOURCE, x))


def test_lines_and_numbers():
    """Do lines stay where they are, are numbers counted through, and is every kind known?"""
    text, made = schema(SOURCE, first=10)
    assert text.count("\n") == SOURCE.count("\n")
    assert [one.number for one in made] == list(range(10, 10 + len(made)))
    assert {one.kind for one in made} <= set(KINDS) and all(1 <= one.line <= SOURCE.count("\n") + 1 for one in made)
    assert not [one for one in schema(SOURCE, skip={5})[1] if one.line == 5]


def test_first_infinity():
    """Does the kernel stop at the line that makes infinity of finite numbers, not at one that hands it on?"""
    source = SOURCE.replace("y[i] = twice(sum);", "float v = expf(sum);\n    y[i] = v / (1.0f + v);")
    text, _ = schema(source)
    module = simt.load_inline("mutants", HEAD, text, functions=["run"])
    ctypes.c_int.in_dll(ctypes.CDLL(module.__file__), "grader_mutant").value = mutants.BIRTH
    with pytest.raises(simt.KernelError) as raised:
        module.run(torch.full((1, 8), 200.0))
    assert raised.value.line == next(n for n, line in enumerate(source.split("\n"), 1) if "expf" in line)
    ctypes.c_int.in_dll(ctypes.CDLL(module.__file__), "grader_mutant").value = mutants.BIRTH
    assert torch.isfinite(module.run(torch.zeros(1, 8))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conv2d", "groupnorm", "im2col_conv"])
def test_references_are_unchanged(name):
    """Of the course's kernels, rewritten, does every one compile and have edits in each of its kernels?"""
    text = (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8")
    given = {
        node.targets[0].id: node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    source, cpp = ast.literal_eval(given["cuda_source"]), ast.literal_eval(given["cpp_source"])
    made, edits = schema(source)
    simt.load_inline(name, cpp, made, functions=[f"{name}_forward"])
    kernels = [n for n, line in enumerate(source.split("\n"), 1) if "__global__" in line]
    for first, last in zip(kernels, [*kernels[1:], source.count("\n")]):
        assert sum(first < one.line < last for one in edits) > 50


def test_two_variables_change_places():
    """Is an index with two variables exchanged in it offered once for each pair, and does it give what the exchanged
    text gives?
    """
    index, swapped = "x[(c + 1) * 2 + w - 2]", "x[(w + 1) * 2 + c - 2]"
    source = SOURCE.replace("x[c * W + j] - 1.0f", index).replace("j <= w", "j < 1")
    text, made = schema(source)
    (number,) = [one.number for one in made if one.kind == "swapped"]
    x = torch.randn(2, 2)
    assert same(run(text, x, number), run(source.replace(index, swapped), x)) and not same(
        run(text, x), run(text, x, number)
    )


def test_a_sum_that_is_set_anew_in_each_pass():
    """Is a loop offered in which only the first pass sets the sum?"""
    source = SOURCE.replace(
        "for (int j = 0; j <= w; ++j) sum", "for (int j = 0; j <= w; ++j) {\n sum = 0.0f; sum"
    ).replace("1.0f;\n", "1.0f; }\n", 1)
    text, made = schema(source)
    (number,) = [one.number for one in made if one.kind == "first pass"]
    x = torch.randn(3, 5)
    assert (
        same(run(text, x, number), run(SOURCE, x))
        and same(run(text, x), run(source, x))
        and not same(run(source, x), run(SOURCE, x))
    )


def test_barriers_are_offered_where_shared_memory_is():
    """Is a barrier offered between two statements of a kernel with shared memory, and none elsewhere?"""
    source = (
        "__global__ void k(float* y) {\n"
        "  __shared__ float a[8];\n"
        "  a[threadIdx.x] = 1;\n"
        "  y[threadIdx.x] = a[7 - threadIdx.x];\n"
        "}\n"
    )
    assert (3, 4) in [(one.line, one.until) for one in schema(source)[1] if one.kind == "barrier"]
    assert not [one for one in schema(source.replace("__shared__ ", ""))[1] if one.kind == "barrier"]


@pytest.mark.parametrize(
    "line, kind, what, needed",
    [
        (5, "comparison", "i >= total", {">", "<", "<="}),
        (6, "operator", "i / W", {"i", "i * W", "i % W"}),
        (6, "operator", "i / W % C", {"i / W", "i / W / C", "i / W * C"}),
        (9, "term", "c * W + j", {"c * W", "j", "c * W - j", "c * W * j"}),
        (9, "term", "x[c * W + j] - 1.0f", {"x[c * W + j]", "x[c * W + j] + 1.0f"}),
        (9, "variable", "c", {"w", "j", "i"}),
        (9, "index", "x", set()),
        (9, "number", "1.0f", {"2.0f", "0.0f", "0.5f", "1.0f", "-INFINITY", "INFINITY"}),
    ],
)
def test_what_a_mutant_changes_is_quoted(line, kind, what, needed):
    """Does a mutant quote the student's expression, and the part of it or the name that the line needs instead?"""
    made = [one for one in schema(SOURCE)[1] if (one.line, one.kind, one.what) == (line, kind, what)]
    changes = {operator_mutants.ONE_MORE, operator_mutants.ONE_LESS, operator_mutants.ROUNDED_UP, ""}
    assert made and {one.needed for one in made} - changes == needed


MOST = """
__global__ void k(const float* x, float* y, int C, int W, int total) {
    int i = blockIdx.x * 8 + threadIdx.x;
    if (i >= C) return;
    float s = -1.5f, most = -INFINITY;
    for (int w = 0; w < W; ++w) {
        float v = x[i * W + w];
        if (v > most) most = v;
    }
    most *= s;
    y[i] = most;
}
"""
LAUNCH = SOURCE[SOURCE.index("torch::Tensor run") :]


@pytest.mark.slow
@pytest.mark.parametrize(
    "after, inside",
    [
        ("most *= s;", "float v = x[i * W + w] * s;"),
        ("most = fabsf(most) - s;", "float v = fabsf(x[i * W + w]) - s;"),
    ],
)
@pytest.mark.parametrize("loop", ["if (v > most) most = v;", "most = fmaxf(most, v);"])
def test_what_is_done_after_a_loop(after, inside, loop):
    """Of what is done to the largest value behind the loop that finds it: is it offered to do that with each value
    instead?
    """
    source = (MOST + LAUNCH).replace("most *= s;", after).replace("if (v > most) most = v;", loop)
    text, made = schema(source)
    (number,) = [one.number for one in made if one.kind == "each value"]
    assert source.split("\n")[made[number - 1].line - 1].strip() == after
    x = torch.randn(5, 7)
    x[:, 3] = -9.0  # the largest magnitude, and not the largest value
    wanted = run(source.replace("float v = x[i * W + w];", inside).replace(f"    {after}\n", ""), x)
    assert (
        same(run(text, x, number), wanted) and not same(run(source, x), wanted) and same(run(text, x), run(source, x))
    )


@pytest.mark.parametrize(
    "old, new",
    [
        ("most *= s;", "float t = s; most *= t;"),  # t is not there yet inside the loop
        ("if (v > most) most = v;", "most += v;"),  # a sum, not one of the values
        ("most *= s;", "most = s;"),
    ],
)
def test_what_cannot_be_done_inside(old, new):
    """Is that offered neither for sums nor with variables that the loop does not know?"""
    assert not [one for one in schema((MOST + LAUNCH).replace(old, new))[1] if one.kind == "each value"]


ONLINE = """
__global__ void k(const float* x, float* y, int C, int W) {
    int i = blockIdx.x * 8 + threadIdx.x;
    if (i >= C) return;
    float top = -9.0f, sum = 0.0f, other = 0.0f;
    for (int first = 0; first < W; first += 2) {
        const int seen = min(2, i + 1);
        for (int w = 0; w < seen && first + w < W; ++w) {
            float v = x[i * W + first + w];
            if (v > top) {
                top = v;
                float shrink = expf(top - v);
                sum *= shrink;
            }
            sum += expf(v - top);
            other += v * expf(v - top);
        }
    }
    y[i] = sum + other;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::zeros({x.size(0)}, x.options());
    k<<<1, 8>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
    return y;
}
"""


@pytest.mark.parametrize(
    "kind, line, old, new",
    [
        (
            "too early",
            12,
            "top = v;\n                float shrink = expf(top - v);",
            "float shrink = expf(top - v);\n                top = v;",
        ),
        ("unscaled", 13, "sum *= shrink;", "sum *= shrink; other *= shrink;"),
        ("tile start", 7, "min(2, i + 1)", "min(2, i - first + 1)"),
    ],
)
def test_what_changes_as_a_loop_runs(kind, line, old, new):
    """Does a mutant move a line, rescale a sum or count from the tile as the edited text does?"""
    source = ONLINE.replace("expf(top - v)", "expf(-0.5f * (v + 9.0f))") if kind == "unscaled" else ONLINE
    text, made = schema(source)
    numbers = [one.number for one in made if (one.kind, one.line) == (kind, line)]
    x = torch.arange(28.0).view(4, 7).sin()
    wanted = run(source.replace(old, new), x)
    assert numbers and old in source and not same(run(text, x), wanted)
    assert any(same(run(text, x, number), wanted) for number in numbers)


def test_a_sum_without_a_factor():
    """Is the element of another input offered as a factor of a sum's terms, and does it give what the text gives?"""
    source = SOURCE.replace("const float* x, float* y", "const float* x, const float* z, float* y").replace(
        "sum += x[c * W + j] - 1.0f", "sum += x[c * W + j]"
    )
    source = source.replace("(x.data_ptr<float>(), y", "(x.data_ptr<float>(), x.data_ptr<float>(), y")
    text, made = schema(source)
    (number,) = [one.number for one in made if one.kind == "sum factor"]
    wanted = source.replace("sum += x[c * W + j]", "sum += x[c * W + j] * z[c * W + j]")
    x = torch.randn(3, 5)
    assert same(run(text, x, number), run(wanted, x)) and not same(run(text, x), run(wanted, x))


COUNTS = """
__global__ void k(const float* x, float* y, int n) {
    const int i = threadIdx.x;
    const float v = i < n - 3 ? x[i] : 2.0f, own = v;
    float upto = own;
    for (int j = 0; j < i; ++j) upto += 10.0f;
    y[i] = upto + 1.0f;
    atomicAdd(&y[(int)v], 100.0f);
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::zeros_like(x);
    k<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0));
    return y;
}
"""


@pytest.mark.parametrize(
    "kind, line, what, needed, old, new",
    [
        ("guard", 8, "i < n - 3", "v", "atomicAdd(", "if (i < n - 3) atomicAdd("),
        ("own value", 7, "upto", "own", "upto + 1.0f", "upto - own + 1.0f"),
    ],
)
def test_what_a_thread_adds_of_its_own(kind, line, what, needed, old, new):
    """Is it offered to leave out threads without an element, and to store the sum of what comes before a thread's own
    value? Do they give what the edited text gives?
    """
    text, made = schema(COUNTS)
    (one,) = [one for one in made if one.kind == kind]
    assert (one.line, one.what, one.needed) == (line, what, needed)
    x = torch.tensor([0.0, 1.0, 1.0, 0.0, 3.0, 3.0, 3.0])
    wanted = run(COUNTS.replace(old, new), x)
    assert same(run(text, x, one.number), wanted) and not same(run(text, x), wanted)


SIGNS = """
__global__ void k(const float* x, float* y, int n) {
    const int i = threadIdx.x;
    if (i < n) y[i] = 0.0f;
    const int kept = x[i] > 0.0f;
    if (kept > 0) y[i] = 1.0f;
    if (x[i] > 0.0f) y[i] += x[i];
}
""" + COUNTS[COUNTS.index("torch::Tensor run") :]


def test_a_sign_is_left_out_wherever_it_is_tested():
    """Does one mutant compare with != in all places that compare a float with 0, and in no other?"""
    text, made = schema(SIGNS)
    (one,) = [one for one in made if one.kind == "sign"]
    assert (one.line, one.what, one.needed) == (5, "x[i] > 0.0f", "x[i] != 0.0f")
    x = torch.tensor([0.0, 1.0, -2.0, 3.0])
    assert same(run(text, x, one.number), torch.tensor([0.0, 2.0, -1.0, 4.0])) and not same(
        run(text, x), run(text, x, one.number)
    )


def test_comparisons_of_two_statements_are_no_template():
    """Are comparisons mutated of which a first one has a < in brackets, and a later one a >?"""
    lines = {one.line for one in schema(SIGNS)[1] if one.kind == "comparison"}
    assert lines == {4, 5, 6, 7}


def test_lanes_that_must_meet_are_not_left_out():
    """Is no guard offered for what all lanes of a warp call, and none without a value in an element's place?"""
    source = COUNTS.replace("atomicAdd(&y[(int)v], 100.0f)", "y[i] = __shfl_down_sync(~0u, v, 1)")
    assert not [one for one in schema(source)[1] if one.kind == "guard"]
    source = COUNTS.replace("i < n - 3 ? x[i] : 2.0f", "x[i]")
    assert not [one for one in schema(source)[1] if one.kind == "guard"]


TWO_TILES = """
__device__ float twice(float v) { return v * 2; }
template <int N>
__device__ float add(const float v[N]) { return v[0] + v[N - 1]; }
__global__ void k(const float* x, float* y, int H, int W) {
  __shared__ float left[4], right[4], wide[5];
  left[threadIdx.x] = x[threadIdx.x];
  right[threadIdx.x] = 10 * x[threadIdx.x];
  wide[threadIdx.x] = 1;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += right[i] * left[0];
  y[threadIdx.x] = add<4>(left) * 0 + sum;
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  k<<<1, 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), 1, 4);
  return y;
}
"""


def test_arrays_of_one_shape_and_fixed_indices_are_exchanged():
    """Is an array read in place of another of the same shape, and a loop's variable used in place of a fixed index,
    with the results of the text written so? And is a template's argument no comparison?
    """
    x = torch.tensor([1.0, 2.0, 3.0, 5.0])
    text, made = schema(TWO_TILES)
    found = {(one.what, one.needed): one.number for one in made if one.kind == "variable"}
    for old, new in ((("right", "left"), ("right[i]", "left[i]")), (("left[0]", "left[i]"), ("left[0]", "left[i]"))):
        assert same(run(text, x, found[old]), run(TWO_TILES.replace(*new), x))
        assert not same(run(text, x, found[old]), run(text, x))
    assert not any("wide" in names for names in found)
    assert not [one for one in made if one.kind == "comparison" and "add" in one.what]
