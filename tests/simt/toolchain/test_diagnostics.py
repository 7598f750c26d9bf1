"""Compiler messages: are they at the student's lines, and is no time spent on what cannot help?"""

from pathlib import Path

import pytest

from simt.errors import CompileError, Diagnostic, NoCompiler
from simt.toolchain import build
from simt.toolchain.compilers import run_compiler
from simt.toolchain.diagnostics import read_diagnostics
from simt.toolchain.units import Sources, make_units

CUDA = """__global__ void k(float* y) {
  sum += y[0];
  y[1] = sum(y);
}
torch::Tensor f(torch::Tensor x) {
  float part = 2 * sum;
  auto y = sum(x, 1);
  auto z = sum
      (x, 1);
  CALL(sum, x);
  k<<<1, 1>>>(other.data_ptr<float>());
  return y;
}
"""


def make_unit():
    sources = Sources("diagnostics", ["torch::Tensor f(torch::Tensor x);"], [CUDA], {"f": "f"}, [], [])
    return sources, make_units(sources, "plain")[0][1]


@pytest.mark.parametrize(
    "line, name, tries",
    [(2, "sum", 1), (3, "sum", 1), (6, "sum", 1), (7, "sum", 2), (8, "sum", 2), (10, "sum", 2), (11, "other", 1)],
)
def test_the_header_with_all_operators_is_tried_where_it_may_help(monkeypatch, line, name, tries):
    """Is it built for the call of an operator of torch alone, and not for a variable or for device code?"""
    headers = []

    def fail(unit, precompiled, folder):
        headers.append(unit.header)
        text = CUDA.split("\n")[line - 1]
        message = f"‘{name}’ was not declared in this scope"
        raise CompileError([Diagnostic("cuda_sources", line, 1, "error", message, text)])

    monkeypatch.setattr(build, "_compile", fail)
    monkeypatch.setattr(build, "build_header", lambda name, *_: Path(name))
    _, unit = make_unit()
    with pytest.raises(CompileError):
        build.link("diagnostics", [unit], [], [], [])
    assert headers == ["prelude", "prelude_full"][:tries]


def test_the_header_with_all_operators_is_tried_where_an_operator_gets_other_arguments(monkeypatch):
    """Is it built where the light header's declaration of an operator does not take what torch's own may take?"""
    headers = []

    def fail(unit, precompiled, folder):
        headers.append(unit.header)
        message = "no matching function for call to ‘sum(at::Tensor&, at::Dimname)’"
        raise CompileError([Diagnostic("cuda_sources", 7, 12, "error", message, "  auto y = torch::sum(x, name);")])

    monkeypatch.setattr(build, "_compile", fail)
    monkeypatch.setattr(build, "build_header", lambda name, *_: Path(name))
    with pytest.raises(CompileError):
        build.link("diagnostics", [make_unit()[1]], [], [], [])
    assert headers == ["prelude", "prelude_full"]


def test_notes_about_headers_are_left_out():
    """Is a note dropped that announces others, all in headers, and neither a name within torch's own parts suggested,
    nor one that is not like the unknown one?
    """
    output = """cuda_sources:2:3: error: ‘sum’ was not declared in this scope; did you mean ‘at::_ops::sum’?
cuda_sources:2:3: note: suggested alternatives:
/usr/include/ATen/ops/sum.h:29:19: note:   ‘at::sum’
cuda_sources:6:9: error: ‘bart’ was not declared in this scope; did you mean ‘part’?
cuda_sources:6:14: error: ‘oz’ was not declared in this scope; did you mean ‘oc’?
cuda_sources:7:8: note: candidates are:
cuda_sources:1:17: note: ‘void k(float*)’
"""
    found = [(d.severity, d.line, d.message) for d in read_diagnostics(output, make_unit()[1])]
    assert found == [
        ("error", 2, "‘sum’ was not declared in this scope"),
        ("error", 6, "‘bart’ was not declared in this scope; did you mean ‘part’?"),
        ("error", 6, "‘oz’ was not declared in this scope"),
        ("note", 7, "candidates are:"),
        ("note", 1, "‘void k(float*)’"),
    ]


def test_a_compiler_without_memory():
    """Is the reason memory, unless an error of the source came first? And is one that does not start a sentence?"""
    script = "echo '{}cc1plus: out of memory allocating 1014323872 bytes' >&2; exit 1"
    with pytest.raises(NoCompiler, match="ran out of memory"):
        run_compiler(["sh", "-c", script.format("")])
    assert run_compiler(["sh", "-c", script.format("a.cu:69:17: error: expected ‘,’\n")]).returncode == 1
    with pytest.raises(NoCompiler, match=r"The compiler /nowhere cannot be started: No such file or directory\."):
        run_compiler(["/nowhere"])
