"""Where a failure of the stage "gradient" comes from: is the line named that the text shows to be wrong, and none where
it shows nothing?
"""
# The file stays whole: each test replaces some lines of one SOURCE and compares the lines that are marked in it.

import ast
import re
from pathlib import Path

import pytest

from grader.diagnosis import gradient_places
from grader.reports import feedback
from grader.source.autograd import Student
from grader.source.cpp import Text
from grader.source.places import Place
from grader.verdict import Evidence, Reason, Stage, StageName, Status

ROOT = Path(__file__).resolve().parents[3]
BACKWARD = {
    path.parent.name: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("kernels_ref/*/backward.py"))
}

SOURCE = '''import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void slope(const float* g, const float* in, const float* w, float* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) out[i] = g[i] * w[0] * cosf(in[i]);
}
__global__ void total(const float* g, const float* in, float* sum, int n) {
    float t = 0;
    for (int i = 0; i < n; ++i) t += g[i] * sinf(in[i]);
    sum[0] = t;
}
torch::Tensor wave(torch::Tensor in, torch::Tensor w) {
    auto out = torch::empty_like(in);
    return out;
}
std::vector<torch::Tensor> wave_back(torch::Tensor g, torch::Tensor in, torch::Tensor w) {
    if (in.numel() == 0) return {in, w};
    g = g.contiguous();
    torch::Tensor grad_in = torch::empty_like(in);
    auto grad_w = torch::empty_like(w);
    slope<<<1, 32>>>(g.data_ptr<float>(), in.data_ptr<float>(), w.data_ptr<float>(),
                     grad_in.data_ptr<float>(), in.numel());
    total<<<1, 1>>>(g.data_ptr<float>(), in.data_ptr<float>(),
                    grad_w.data_ptr<float>(), in.numel());
    return std::vector<torch::Tensor>{grad_in, grad_w};
}
"""
waves = load_inline(name="waves", cpp_sources="", cuda_sources=cuda, functions=["wave", "wave_back"])
held = {}


class Wave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, in_, w, loud):
        ctx.save_for_backward(in_, w)
        ctx.loud = loud
        out = waves.wave(in_, w)
        return out

    @staticmethod
    def backward(ctx, up):
        in_, w = ctx.saved_tensors
        grad_in, grad_w = waves.wave_back(up, in_, w)
        return grad_in, grad_w, None


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        weight = self.layer.weight
        return Wave.apply(x, weight, True)
'''


def found(reason: Reason, source: str, message: str = "", gradient: str | None = None) -> Place | None:
    stage = Stage(
        name=StageName.gradient,
        status=Status.failed,
        reason=reason,
        message=message,
        evidence=[Evidence(gradient=gradient)],
    )
    return gradient_places.of(stage, source)


def lines(
    reason: Reason, edits: list[tuple[str, str]], message: str = "", gradient: str | None = None
) -> list[str] | None:
    """The lines marked in SOURCE with some texts replaced."""
    source = SOURCE
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    place = found(reason, source, message, gradient)
    return [source.split("\n")[n - 1].strip() for n in place.lines] if place else None


NO_GRAPH = "forward's result carries no gradient, so `x` gets none."


@pytest.mark.parametrize(
    "edits, wrong",
    [
        ([("Wave.apply(x, weight, True)", "waves.wave(x, weight)")], ["return waves.wave(x, weight)"]),
        (
            [("return Wave.apply(x, weight, True)", "y = waves.wave(x, weight)\n        return y")],
            ["y = waves.wave(x, weight)"],
        ),
        (
            [("Wave.apply(x, weight, True)", "Wave.forward(None, x, weight, True)")],
            ["return Wave.forward(None, x, weight, True)"],
        ),
        ([("return Wave.apply", "with torch.no_grad():\n            return Wave.apply")], ["with torch.no_grad():"]),
        (
            [("Wave.apply(x, weight, True)", "Wave.apply(x, weight, True).detach()")],
            ["return Wave.apply(x, weight, True).detach()"],
        ),
        (
            [("        return out\n", "        ctx.mark_non_differentiable(out)\n        return out\n")],
            ["ctx.mark_non_differentiable(out)"],
        ),
        (
            [
                (
                    "        weight = self.layer.weight",
                    "        with torch.no_grad():\n            torch.ones(1)\n        weight = self.layer.weight",
                )
            ],
            None,
        ),
        ([("held = {}", "wave = Wave.apply"), ("return Wave.apply(", "return wave(")], None),
        ([], None),
    ],
)
def test_no_graph(edits, wrong):
    """Is the line named that keeps autograd from knowing of the kernel, and none that has nothing to do with it?"""
    assert lines(Reason.missing_gradient, edits, NO_GRAPH) == wrong


def test_no_function_at_all():
    """In a file that has no Function, is the kernel's call named?"""
    source = re.sub(r"class Wave.*?(?=class ModelNew)", "", SOURCE, flags=re.DOTALL).replace(
        "Wave.apply(x, weight, True)", "waves.wave(x, weight)"
    )
    place = found(Reason.missing_gradient, source, NO_GRAPH)
    assert [source.split("\n")[n - 1].strip() for n in place.lines] == ["return waves.wave(x, weight)"]


@pytest.mark.parametrize(
    "edits, gradient, wrong",
    [
        ([("return grad_in, grad_w, None", "return None, grad_w, None")], "x", ["return None, grad_w, None"]),
        (
            [("return grad_in, grad_w, None", "return grad_in, None, None")],
            "layer.weight",
            ["return grad_in, None, None"],
        ),
        (
            [
                ("return grad_in, grad_w, None", "grad_w = None\n        return grad_in, grad_w, None"),
                ("grad_in, grad_w = waves", "grad_in, _ = waves"),
            ],
            "layer.weight",
            ["grad_w = None"],
        ),
        (
            [("apply(x, weight, True)", "apply(x.detach(), weight, True)")],
            "x",
            ["return Wave.apply(x.detach(), weight, True)"],
        ),
        (
            [("apply(x, weight, True)", "apply(x, weight.data, True)")],
            "layer.weight",
            ["return Wave.apply(x, weight.data, True)"],
        ),
        ([("return grad_in, grad_w, None", "return None, grad_w, None")], "layer.weight", None),
        (
            [
                (
                    "return grad_in, grad_w, None",
                    "if up is None:\n            return None, None, None\n        return grad_in, grad_w, None",
                )
            ],
            "x",
            None,
        ),
        ([], "x", None),
    ],
)
def test_none_for_an_argument(edits, gradient, wrong):
    """Is the None named, or what is cut off from its history, of the input or weight that gets no gradient?"""
    assert lines(Reason.missing_gradient, edits, f"`{gradient}` gets no gradient.", gradient) == wrong


SHAPE = (
    "backward returned a gradient of shape [1] as value {}, and the argument that it belongs to has the shape [1, 1]."
)


@pytest.mark.parametrize(
    "edits, number, wrong",
    [
        (
            [("auto grad_w = torch::empty_like(w)", "auto grad_w = torch::empty({1}, w.options())")],
            2,
            ["auto grad_w = torch::empty({1}, w.options());"],
        ),
        ([], 1, ["torch::Tensor grad_in = torch::empty_like(in);"]),
        (
            [("return grad_in, grad_w, None", "return grad_in, grad_w.view(-1), None")],
            2,
            ["return grad_in, grad_w.view(-1), None"],
        ),
        (
            [
                ("grad_in, grad_w = waves.wave_back(up, in_, w)", "both = waves.wave_back(up, in_, w)"),
                ("return grad_in, grad_w, None", "return both[0], both[1], None"),
            ],
            2,
            ["auto grad_w = torch::empty_like(w);"],
        ),
        (
            [
                ("std::vector<torch::Tensor>{grad_in, grad_w}", "{grad_w, grad_in}"),
                ("grad_in, grad_w = waves", "a, b = waves"),
                ("return grad_in, grad_w", "return a, b"),
            ],
            2,
            ["torch::Tensor grad_in = torch::empty_like(in);"],
        ),
        ([("return grad_in, grad_w, None", "return grad_w, grad_in, None")], 1, ["return grad_w, grad_in, None"]),
        (
            [
                (
                    "auto grad_w = torch::empty_like(w);",
                    "auto grad_w = torch::empty_like(w);\n    if (n) grad_w = torch::empty({1});",
                )
            ],
            2,
            None,
        ),
        ([("auto grad_w = torch::empty_like(w)", "auto grad_w = wave(in, w)")], 2, None),
    ],
)
def test_shape(edits, number, wrong):
    """Is the line named that makes the tensor which backward returns for that argument, or that exchanges two; none
    where there are two ways?
    """
    assert lines(Reason.gradient_shape, edits, SHAPE.format(number)) == wrong


def test_a_size_that_may_be_wrong():
    """Where a shape has the right number of sizes, is the line that works out one of them shown beside, and neither
    called wrong?
    """
    source = SOURCE.replace(
        "auto grad_w = torch::empty_like(w)", "int K = in.size(0);\n    auto grad_w = torch::empty({K}, w.options())"
    )
    place = found(Reason.gradient_shape, source, SHAPE.format(2).replace("[1, 1]", "[3]"))
    assert place.lines == () and [
        "auto grad_w" in source.split("\n")[n - 1] or "int K" in source.split("\n")[n - 1] for n in place.beside
    ] == [True, True]


def test_gradients_in_each_others_place():
    """Where values are wrong, is a line named whose names say that two gradients are exchanged, and none where they
    agree?
    """
    exchanged = [("return grad_in, grad_w, None", "return grad_w, grad_in, None")]
    assert lines(Reason.wrong_gradient, exchanged, gradient="x") == ["return grad_w, grad_in, None"]
    assert lines(Reason.wrong_gradient, [], gradient="x") is None


@pytest.mark.parametrize(
    "edits, message, wrong",
    [
        (
            [("return grad_in, grad_w, None", "return grad_in, grad_w")],
            "function WaveBackward returned an incorrect number of gradients (expected 3, got 2)",
            ["return grad_in, grad_w"],
        ),
        (
            [("return grad_in, grad_w, None", "return tuple(waves.wave_back(up, in_, w))")],
            "function WaveBackward returned an incorrect number of gradients (expected 3, got 2)",
            ["return tuple(waves.wave_back(up, in_, w))"],
        ),
        (
            [
                (
                    "return grad_in, grad_w, None",
                    "if ctx.loud:\n            return grad_in, grad_w\n        return grad_in, grad_w, None",
                )
            ],
            "function WaveBackward returned an incorrect number of gradients (expected 3, got 2)",
            ["return grad_in, grad_w"],
        ),
        (
            [("def backward(ctx, up)", "def backward(ctx)")],
            "TypeError: Wave.backward() takes 1 positional argument but 2 were given",
            ["def backward(ctx):"],
        ),
        ([], "function OtherBackward returned an incorrect number of gradients (expected 3, got 2)", None),
        ([], "RuntimeError: something else", None),
    ],
)
def test_number_of_gradients(edits, message, wrong):
    """Is the return named that has too few gradients, and no other?"""
    assert lines(Reason.backward_exception, edits, message) == wrong


CAME_IN = "backward changed the gradient that came in: write to a new tensor."


@pytest.mark.parametrize(
    "edits, message, wrong",
    [
        ([("grad_in = torch::empty_like(in)", "grad_in = g")], CAME_IN, ["torch::Tensor grad_in = g;"]),
        (
            [("grad_in = torch::empty_like(in)", "grad_in = g.view(in.sizes())")],
            CAME_IN,
            ["torch::Tensor grad_in = g.view(in.sizes());"],
        ),
        ([("grad_in = torch::empty_like(in)", "grad_in = g.clone()")], CAME_IN, None),
        (
            [
                ("__global__ void slope(const float* g", "__global__ void slope(float* g"),
                ("if (i < n) out[i] =", "g[i] *= w[0];\n    if (i < n) out[i] ="),
            ],
            CAME_IN,
            ["g[i] *= w[0];"],
        ),
        (
            [("                     grad_in.data_ptr<float>(), in", "                     g.data_ptr<float>(), in")],
            CAME_IN,
            ["g.data_ptr<float>(), in.numel());"],
        ),
        (
            [("grad_w = torch::empty_like(w)", "grad_w = w")],
            "backward changed `layer.weight`: write to a new tensor.",
            ["auto grad_w = w;"],
        ),
        ([("grad_w = torch::empty_like(w)", "grad_w = w")], "backward changed `x`: write to a new tensor.", None),
        ([("grad_in, grad_w = waves", "up.mul_(2)\n        grad_in, grad_w = waves")], CAME_IN, ["up.mul_(2)"]),
        ([("grad_in, grad_w = waves", "up *= 2\n        grad_in, grad_w = waves")], CAME_IN, ["up *= 2"]),
        (
            [("grad_in, grad_w = waves", "up = up.clone()\n        up.mul_(2)\n        grad_in, grad_w = waves")],
            CAME_IN,
            None,
        ),
        ([("g = g.contiguous();", "g.mul_(2);")], CAME_IN, ["g.mul_(2);"]),
        ([("g = g.contiguous();", "g = g.clone();\n    g.mul_(2);")], CAME_IN, None),
        ([], CAME_IN, None),
    ],
)
def test_modified(edits, message, wrong):
    """Is the line named that writes into what backward was only to read, or gives it another name under which it is
    written?
    """
    assert lines(Reason.backward_modified, edits, message) == wrong


@pytest.mark.parametrize(
    "edits, wrong",
    [
        (
            [("    g = g.contiguous();\n", "")],
            [
                "slope<<<1, 32>>>(g.data_ptr<float>(), in.data_ptr<float>(), w.data_ptr<float>(),",
                "total<<<1, 1>>>(g.data_ptr<float>(), in.data_ptr<float>(),",
            ],
        ),
        ([("    g = g.contiguous();\n", ""), ("waves.wave_back(up", "waves.wave_back(up.contiguous()")], None),
        (
            [
                ("    g = g.contiguous();\n", ""),
                ("        grad_in, grad_w = waves", "        up = up.contiguous()\n        grad_in, grad_w = waves"),
            ],
            None,
        ),
        ([("    g = g.contiguous();\n", "    // g = g.contiguous();\n    int s = g.stride(0);\n")], None),
        (
            [
                ("    g = g.contiguous();\n", "    auto dense = g.contiguous();\n"),
                ("slope<<<1, 32>>>(g.", "slope<<<1, 32>>>(dense."),
            ],
            ["total<<<1, 1>>>(g.data_ptr<float>(), in.data_ptr<float>(),"],
        ),
        (
            [
                ("g = g.contiguous();", "auto up = g;"),
                ("slope<<<1, 32>>>(g.", "slope<<<1, 32>>>(up."),
                ("total<<<1, 1>>>(g.", "total<<<1, 1>>>(w."),
            ],
            ["slope<<<1, 32>>>(up.data_ptr<float>(), in.data_ptr<float>(), w.data_ptr<float>(),"],
        ),
        ([], None),
    ],
)
def test_strided(edits, wrong):
    """Are the lines named that take the pointer of the gradient as it came in, and none behind a contiguous()?"""
    assert lines(Reason.noncontiguous_gradient, edits) == wrong


@pytest.mark.parametrize(
    "edits, wrong",
    [
        (
            [
                ("ctx.save_for_backward(in_, w)", "Wave.kept = in_, w"),
                ("in_, w = ctx.saved_tensors", "in_, w = Wave.kept"),
            ],
            ["Wave.kept = in_, w"],
        ),
        (
            [
                ("ctx.save_for_backward(in_, w)", "held['in'], held['w'] = in_, w"),
                ("in_, w = ctx.saved_tensors", "in_, w = held['in'], held['w']"),
            ],
            ["held['in'], held['w'] = in_, w"],
        ),
        (
            [
                ("ctx.save_for_backward(in_, w)", "global held\n        held = in_, w"),
                ("in_, w = ctx.saved_tensors", "in_, w = held"),
            ],
            ["held = in_, w"],
        ),
        (
            [
                ("ctx.save_for_backward(in_, w)", "ctx.kept = in_, w"),
                ("in_, w = ctx.saved_tensors", "in_, w = ctx.kept"),
            ],
            None,
        ),
        (
            [
                ("weight = self.layer.weight", "weight = self.layer.weight\n        self.loud = True"),
                ("in_, w = ctx.saved_tensors", "in_, w = ctx.saved_tensors if ctx.loud else None"),
            ],
            None,
        ),
        (
            [("    auto out = torch::empty_like(in);", "    static torch::Tensor out = torch::empty_like(in);")],
            ["static torch::Tensor out = torch::empty_like(in);"],
        ),
        (
            [
                ("torch::Tensor wave(", "torch::Tensor phase;\ntorch::Tensor wave("),
                ("    return out;", "    phase = out;\n    return out;"),
                ("    g = g.contiguous();", "    g = g.contiguous() * phase;"),
            ],
            ["phase = out;"],
        ),
        ([], None),
    ],
)
def test_kept(edits, wrong):
    """Is the line named that keeps a tensor where the next call overwrites it, and none that keeps it in ctx?"""
    assert lines(Reason.saved_overwritten, edits) == wrong


@pytest.mark.parametrize("name", BACKWARD)
def test_references_are_not_accused(name):
    """Of the course's own backward solutions, which are right: is no line of theirs called wrong?"""
    source = BACKWARD[name]
    student = Student(ast.parse(source), Text(source))
    weights = [
        ast.unparse(argument).removeprefix("self.") for argument in student.applied()[0].args[: len(student.own.saved)]
    ]
    assert found(Reason.missing_gradient, source, NO_GRAPH) is None
    assert (
        found(
            Reason.backward_modified,
            source,
            "backward changed `x`, the gradient that came in and forward's result: write to a new tensor.",
        )
        is None
    )
    assert found(Reason.noncontiguous_gradient, source) is None and found(Reason.saved_overwritten, source) is None
    assert all(found(Reason.wrong_gradient, source, gradient=weight) is None for weight in weights)
    assert found(Reason.missing_gradient, source, "`x` gets no gradient.", "x") is None


@pytest.mark.parametrize("name", BACKWARD)
def test_references_without_contiguous(name):
    """If a course's backward solution takes the gradient as it came in, are just the lines named that read it?"""
    source = re.sub(r"\n *(gy|gC|go) = \1\.contiguous\(\);[^\n]*", "\n", BACKWARD[name])
    marked = [source.split("\n")[n - 1] for n in found(Reason.noncontiguous_gradient, source).lines]
    assert marked and all(re.search(r"\bg(?:y|C|o)(?:\.data_ptr|,|\))", line) for line in marked)


def parts_of(source: str, found: bool = False) -> list:
    """What is shown of a backward that returns a None for x."""
    stage = Stage(
        name=StageName.gradient,
        status=Status.failed,
        reason=Reason.missing_gradient,
        message="`x` gets no gradient.",
        evidence=[Evidence(gradient="x")],
    )
    return feedback.excerpt(stage.evidence[0], stage, source, "line {}".format, found)


def test_what_is_shown():
    """Is the sentence shown with the line marked among its neighbours, and neither where another line is known to be
    wrong?
    """
    source = SOURCE.replace("return grad_in, grad_w, None", "return None, grad_w, None")
    words, code = parts_of(source)
    assert "as value 1" in words.text and [text.strip() for _, text, wrong in code.lines if wrong] == [
        "return None, grad_w, None"
    ]
    assert len(code.lines) == 5 and parts_of(source, found=True) == []


def test_lines_that_are_only_to_be_looked_at():
    """Are lines shown without a mark where a place has none to mark, and one that is too far from the marked one left
    out?
    """
    place, lines = Place("Look:", (), beside=(2, 9)), [f"line {n}" for n in range(1, 99)]
    assert feedback._placed(lines, place, str).lines == [(2, "line 2", False), (9, "line 9", False)]
    place = Place("Look:", (5,), beside=(3, 90))
    assert [(n, wrong) for n, _, wrong in feedback._placed(lines, place, str).lines] == [
        (n, n == 5) for n in range(1, 8)
    ]


@pytest.mark.parametrize(
    "value, wrong",
    [
        ("up.sum()", ["return up.sum()"]),
        ("waves.back(up)", ["torch::Tensor slope = torch::empty({1});"]),
        ("waves.two(up)", None),  # which of the two?
    ],
)
def test_a_function_of_one_argument(value, wrong):
    """Is the line found, too, where backward returns one gradient and no tuple?"""
    source = f'''waves = load_inline(cuda_sources="""
torch::Tensor back(torch::Tensor g) {{
    torch::Tensor slope = torch::empty({{1}});
    return slope;
}}
std::vector<torch::Tensor> two(torch::Tensor g) {{
    return {{g, g}};
}}""")
class Wave(Function):
    def forward(ctx, x):
        return x
    def backward(ctx, up):
        return {value}
'''
    place = found(Reason.gradient_shape, source, SHAPE.format(1))
    assert ([source.split("\n")[n - 1].strip() for n in place.lines] if place else None) == wrong


def test_names_that_go_round():
    """Is there no place, and no error, where variables are set to each other?"""
    source = SOURCE.replace("return grad_in, grad_w, None", "a = b\n        b = a\n        return a, grad_w, None")
    assert found(Reason.gradient_shape, source, SHAPE.format(1)) is None
    assert found(Reason.gradient_shape, "no python (", SHAPE.format(1)) is None
