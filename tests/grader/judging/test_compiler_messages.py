"""Messages of compilers, each provoked by a source with one mistake: is its usual cause told, at the line that is
wrong?

The sources are in compiler_messages/cases.toml; g++ is asked here, through simt; what nvcc says of them is in
compiler_messages/nvcc.json.
"""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import torch

import simt
from grader.judging import compiler_messages
from simt.toolchain.half_macros import TORCH_FLAGS

HERE = Path(__file__).parent / "compiler_messages"
CASES = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))
NVCC = json.loads((HERE / "nvcc.json").read_text(encoding="utf-8"))["said"]
DECLARED = "torch::Tensor run(torch::Tensor x);"


def text_of(case: dict) -> str:
    """The case's cuda_sources."""
    return case["cuda"].removeprefix("\n").replace("HOST", "torch::Tensor run(torch::Tensor x) { return x; }")


def said_here(name: str) -> tuple[str, str, str, int]:
    """What simt's build, or its launch, says first: message, line of the source, the source, the line's number."""
    case = CASES[name]
    sources = {"cuda_sources": text_of(case), "cpp_sources": case.get("cpp", DECLARED).removeprefix("\n")}
    with pytest.raises((simt.BuildError, simt.KernelError)) as caught:
        module = simt.load_inline(f"message_{name}", **sources, functions=["run"] if case.get("bound", True) else None)
        module.run(torch.zeros(64))
    assert isinstance(caught.value, simt.KernelError) is case.get("launches", False)
    if isinstance(caught.value, simt.KernelError):
        return caught.value.message, "", sources["cuda_sources"], caught.value.line
    assert isinstance(caught.value, simt.CompileError)
    first = compiler_messages.find_cause([d for d in caught.value.diagnostics if d.severity == "error"])
    return first.message, first.text, sources.get(first.source) or sources["cuda_sources"], first.line


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.get("only") != "nvcc"])
def test_here(name):
    """Does the message that simt's build gives first get the explanation meant for it, at the line that is wrong?"""
    message, line, source, number = said_here(name)
    explanation = compiler_messages.explain(message, line, source, number)
    assert explanation and explanation.name == name, (message, line, explanation)
    assert CASES[name].get("at", "") in line


@pytest.mark.parametrize("name", sorted(NVCC))
def test_nvcc(name):
    """Does what nvcc says first get the same explanation, at the same line?"""
    source = text_of(CASES[name])
    lines = source.split("\n")
    notes = [
        Said(message, lines[number - 1] if number else "", number)
        for number, severity, message in NVCC[name]
        if severity != "warning"
    ]
    if not notes:
        pytest.skip("nvcc accepts it, or only warns")
    first = compiler_messages.find_cause(notes)
    explanation = compiler_messages.explain(first.message, first.text, source, first.line or None)
    assert explanation and explanation.name == name, (first, explanation)
    assert not first.line or CASES[name].get("at", "") in first.text


class Said:
    """A message as messages.first takes it."""

    def __init__(self, message: str, text: str, line: int):
        self.message, self.text, self.line = message, text, line

    def __repr__(self):
        return f"{self.line}: {self.message} | {self.text}"


def test_forty():
    """Are there forty of them, each with a source that provokes it here or with nvcc, and each nvcc answer known?"""
    assert len(CASES) >= 40
    assert {name for name, case in CASES.items() if case.get("only") != "simt"} == set(NVCC)
    provoked_by_python_alone = {"incompatible_arguments"}
    assert {known.name for known in compiler_messages.KNOWN} == set(CASES) | provoked_by_python_alone


def test_only_the_first_fits_what_is_meant():
    """Do entries that stand before the right one leave a message alone that is not theirs? (a message of no kind gets
    none)
    """
    assert compiler_messages.explain("something quite different happened", "x = 1;") is None


def test_the_line_without_a_semicolon():
    """Is the line above named where it has no semicolon, and the line itself where the one above is complete?"""

    def explain(source: str, number: int) -> compiler_messages.Explanation:
        found = compiler_messages.explain("expected ‘;’ before ‘float’", "", source, number)
        assert found is not None
        return found

    dot = compiler_messages.explain("expected ‘;’ before ‘·’", "s += x[k] · w[k];", "for (;;)\n  s += x[k] · w[k];", 2)
    assert dot is not None and dot.name == "stray_character"
    above = explain("int i = threadIdx.x\n\nfloat y = x[i];", 3)
    assert above.text == "A semicolon is missing, most often at the end of the line above, `int i = threadIdx.x`."
    assert above.number == 1
    here = explain("float sum = 0.0f;  // the start\nsum += x[i]\nfloat y = sum;", 2)
    assert here.text == "A semicolon is missing in this line, most often at its end." and here.number is None


@pytest.mark.parametrize(
    "message, line, above",
    [
        ("expected ‘;’ before ‘y’", "    rest //= OW;", ""),
        ('expected a ";"', "    y[rest] = 1.0f;", "    rest //= OW;  // rows left"),
        ("expected ‘,’ or ‘;’ before ‘rest’", "    rest = a;", "    const int a = rest // OW, b = rest % OW;"),
        ("expected ‘;’ before ‘y’", "    for (int i = 0; i < n // 2; ++i) rest += i;", ""),
        ("expected ‘;’ before ‘rest’", "    for (int i = n // 2; i > 0; i //= 2) {", ""),
        ("expected ‘]’ before ‘y’", "    y[rest // 2] = 1.0f;", ""),
        ('expected a ")"', "    y[0] = s;", "    float s = fmaxf(x[0], (rest + 1) // 2);"),
    ],
)
def test_division_as_in_python(message, line, above):
    """Is `//` between two numbers told as what it is in C++, in the line that the compiler names or the one above
    it?
    """
    explanation = compiler_messages.explain(message, line, f"{above}\n\n{line}", 3)
    slip = above or line
    assert explanation.name == "python_division"
    assert explanation.text == f"`//` begins a comment in C++. Integer division is `/`. See `{slip.strip()}`."


@pytest.mark.parametrize(
    "line",
    [
        "int i = threadIdx.x  // the thread's own;",
        "sum += x[i] // x, W)",
        "int i = threadIdx.x;  // n / OW;",
        "rest = a",
        "y[i] = 2 // see k(x)",
    ],
)
def test_a_comment_is_no_division(line):
    """Is a missing semicolon still said to be one where a comment stands behind the place, or none does?"""
    assert (
        compiler_messages.explain("expected ‘;’ before ‘y’", line, f"int n = 0;\n{line}\ny[0] = 1;", 2).name
        == "missing_semicolon"
    )


def test_words_are_filled_in():
    """Is the name that the compiler does not know named in the explanation?"""
    assert "`__shfl_down_sync`" in compiler_messages.explain('identifier "__shfl_down" is undefined').text.replace(
        "Write __shfl_down_sync", "`__shfl_down_sync`"
    )
    assert "`rwo`" in compiler_messages.explain("‘rwo’ was not declared in this scope; did you mean ‘row’?").text
    assert all(
        "{name}" not in compiler_messages.explain(words).text for words in ("‘rwo’ was not declared in this scope",)
    )


# Statements on the halves h and g, the half2 p, the bfloat16 b and the float f, by the entry for what refuses them.
OF_HALVES = {
    "half_operators": [
        "h = h * g;", "h += g;", "f = h < g;", "h = -h;", "h++;", "p = p + p;", "f = f * h;", "b = b + f;", "h = f;",
        "if (!h) f = 1;",
    ],
    "half_conversion": [
        "float z = h;", "f = h;", "f = (float)h;", "f = static_cast<float>(b);", "__half z = f;", "half z = 0.0f;",
        "__half z(f);", "h = (__half)f;", "f = expf(h);", "if (h) f = 1;", "__half2 z(f, f);", "__half z = b;",
        "h = __hadd(h, f);", "f = __half2float(b);", "f = f > 0 ? h : f;",
    ],
    "half_extremes": ["h = max(h, g);", "b = min(b, b);"],
    "index_of_value": ["f = __half2float(h[0]);", "p = p[1];"],
    "remainder_of_floats": ["h = h << 1;", "h = h % g;", "p = p & p;"],
}  # fmt: skip


def write_halves(name: str) -> str:
    """Return a source that has a line for each of an entry's statements."""
    parameters = "__half h, __half g, __half2 p, __nv_bfloat16 b, float f"
    lines = [f"__device__ void f{n}({parameters}) {{ {statement} }}" for n, statement in enumerate(OF_HALVES[name])]
    return "\n".join(["#include <cuda_fp16.h>", "#include <cuda_bf16.h>", *lines, ""])


def check_halves(name: str, source: str, messages: dict[int, str]) -> None:
    """Check that each line with a statement has a message with the explanation of the entry."""
    assert len(messages) == len(OF_HALVES[name])
    for number, message in messages.items():
        explanation = compiler_messages.explain(message, source.split("\n")[number - 1], source, number)
        assert explanation and explanation.name == name, (number, message, explanation)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_HALVES)
def test_halves(name):
    """Is each statement refused that torch's flags hide, with the explanation meant for it?"""
    source = write_halves(name)
    with pytest.raises(simt.CompileError) as caught:
        simt.load_inline("halves", DECLARED, source, functions=["run"])
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    check_halves(name, source, {d.line: d.message for d in reversed(errors)})


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize("name", OF_HALVES)
def test_halves_with_nvcc(name, tmp_path):
    """Does nvcc refuse the same statements, with the same explanations?"""
    source, file = write_halves(name), tmp_path / "cuda.cu"
    file.write_text(source, encoding="utf-8")
    command = ["nvcc", *TORCH_FLAGS, "-std=c++20", "-arch=sm_75", "-cubin", "-o", str(tmp_path / "out"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.findall(r"cuda\.cu\((\d+)\): error[^:]*: (.*)$", done.stdout + done.stderr, re.MULTILINE)
    check_halves(name, source, {int(line): message for line, message in reversed(found)})


@pytest.mark.parametrize(
    "name, message",
    [
        ("half_operators", "invalid operands to binary expression ('__half' and '__half')"),
        ("half_operators", "no viable overloaded '+='"),
        ("half_operators", "invalid argument type '__half' to unary expression"),
        ("half_operators", "cannot increment value of type '__half'"),
        ("half_conversion", "no viable conversion from '__half' to 'float'"),
        ("half_conversion", "no viable conversion from 'float' to '__half'"),
        ("half_conversion", "cannot convert '__half' to 'float' without a conversion operator"),
        ("half_conversion", "no matching conversion for functional-style cast from '__nv_bfloat16' to 'float'"),
        ("half_conversion", "no matching constructor for initialization of '__half2'"),
        ("half_conversion", "assigning to 'float' from incompatible type '__half'"),
        ("half_conversion", "value of type '__half' is not contextually convertible to 'bool'"),
        ("half_extremes", "no matching function for call to 'max'"),
    ],
)
def test_halves_in_clangs_words(name, message):
    """Do the messages of clang get the same explanations?"""
    explanation = compiler_messages.explain(message, "h = max(h, g);", "__global__ void k(__half h) {", 1)
    assert explanation and explanation.name == name
    assert not compiler_messages.explain("no viable conversion from 'Pair' to 'float'", "f = p;", "", 1)
