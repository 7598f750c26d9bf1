"""Inline PTX that cannot run on a CPU or that nvcc would refuse: is the error one sentence with its line?"""

from __future__ import annotations

import re

import pytest

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source


def _refused(template: str, operands: str = "") -> simt.CompileError:
    source = f'__global__ void k(float* x, int i) {{\n  float f;\n  asm volatile("{template}"{operands});\n}}'
    with pytest.raises(simt.CompileError) as caught:
        rewrite(Source(source, "cuda_sources"))
    (found,) = caught.value.diagnostics
    assert (found.line, found.text) == (3, source.split("\n")[2])
    assert found.message.endswith(".") and found.message.count(". ") <= 1  # what is wrong, what to do
    return caught.value


@pytest.mark.parametrize(
    ("template", "operands", "name", "instead"),
    [
        (
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0}, %1, %2, 1, 1, 1;",
            "",
            "wgmma.mma_async",
            "m64nNk16.f32.f16.f16 .*m16n8k8",
        ),
        (
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0}, {%1}, {%2}, {%3};",
            "",
            "mma.sync.aligned.m8n8k4",
            "m16n8k16",
        ),
        ("cp.async.bulk.commit_group;", "", "cp.async.bulk.commit_group", "cp.async.wait_group"),
        ("mbarrier.init.shared.b64 [%0], 1;", "", "mbarrier.init", "cuda::barrier"),
        ("ld.global.v8.f32 {%0}, [%1];", "", "ld.global.v8.f32", "CUDA C\\+\\+"),
        ("bar.sync 1;", "", "bar.sync", "the constant 1 .* Use 0"),
        ("cp.async.cg.shared.global [%0], [%1], 8;", ' :: "r"(i), "l"(x)', "cp.async.cg", "the constant 8 .* Use 16"),
        ("bra done;", "", "bra", "CUDA C\\+\\+"),
        ("done:", "", "done:", "loop or branch"),
        ("mov.u32 %0, %%gridid;", ' : "=r"(i)', "%gridid", "%laneid"),
        ("setmaxnreg.dec.sync.aligned.u32 40;", "", "setmaxnreg", "CUDA C\\+\\+"),
    ],
)
def test_other_instructions_are_refused_by_name(template, operands, name, instead):
    """Is an instruction outside the subset one sentence with its name, its line and what works?"""
    error = _refused(template, operands)
    assert isinstance(error, simt.Unsupported) and name in str(error)
    assert re.search(r"\. (Use|Write) ", str(error)) and re.search(instead, str(error))


@pytest.mark.parametrize(
    ("template", "operands", "words"),
    [
        ("ex2.approx.f32 %0, %1, %2;", ' : "=f"(f) : "f"(f), "f"(f)', "takes 2 operands, not 3"),
        ("ex2.approx.f32 %0, %1;", ' : "=f"(f)', "uses %1, but this asm has 1 operand"),
        ("cvt.rna.tf32.f32 %0, %1;", ' : "=f"(f) : "f"(f)',
         'returns a 32-bit integer, but %0 is a float. Use the constraint "r"'),
        ("mov.u32 %0, %1;", ' : "=r"(i) : "f"(f)',
         'takes a 32-bit integer, but %1 is a float. Use the constraint "r"'),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1}, {%1}, {%0};", ' : "+f"(f) : "r"(i)',
         "takes 4 registers in braces"),
        ("ld.global.f32 %0, [%1];", ' : "=f"(f) : "r"(i)',
         "the address %1 is a 32-bit integer. Use the constraint"),
        ("ex2.approx.f32 %0, %1;", ' : "f"(f) : "f"(f)', "wrong list"),
        ("ex2.approx.f32 %0, %1;", ' : "=x"(f) : "f"(f)', 'constraint "=x"'),
        ("ex2.approx.f32 %1, %0;", ' : "=f"(f) : "f"(f)', "writes %1, which is an input"),
        ("ex2.approx.f32 %0, %1", ' : "=f"(f) : "f"(f)', "semicolon"),
        ("ex2.approx.f32 %0, y;", ' : "=f"(f)', "y is not an operand"),
        ("cp.async.wait_group %0;", ' :: "r"(i)', "takes a constant"),
        ("ex2.approx.f32 %[o], %[i];", ' : [o] "=f"(f) : [i] "f"(f)', "by number"),
        ("add.f32 %0, %0, 1.0;", ' : "+f"(x[i++])', "Move it out"),
    ],
)  # fmt: skip
def test_wrong_operands_are_told_in_a_sentence(template, operands, words):
    """Is what nvcc would refuse told by the operand, not by g++'s words?"""
    error = _refused(template, operands)
    assert not isinstance(error, simt.Unsupported) and words in str(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraint", "variable"),
    [("r", "float"), ("f", "int"), ("l", "int"), ("h", "int"), ("r", "long long"), ("r", "short")],
)
def test_constraints_hold_the_variables_type(constraint, variable):
    """Is a variable of another size or kind than its constraint's an error at its line?"""
    source = f'__global__ void k({variable} v) {{\n  asm volatile("" :: "{constraint}"(v));\n}}'
    with pytest.raises(simt.CompileError, match=f'constraint "{constraint}" is') as caught:
        simt.load_inline("wrong", cpp_sources="void f();", cuda_sources=source + "\nvoid f() {}", functions=["f"])
    assert caught.value.diagnostics[0].line == 2


def test_what_is_not_compiled_is_not_refused():
    """May a branch for newer GPUs hold what a CPU can't run, and is it told at its line where that branch is the one
    compiled?
    """
    branch = '#if {}\n__global__ void k() {{ asm volatile("griddepcontrol.wait;"); }}\n#endif\nvoid f() {{}}'

    def build(condition):
        source = branch.format(condition)
        return simt.load_inline("kept", cpp_sources="void f();", cuda_sources=source, functions=["f"])

    build("__CUDA_ARCH__ >= 900").f()
    with pytest.raises(
        simt.CompileError, match=r"^cuda_sources, line 2: `griddepcontrol.wait`: this PTX instruction cannot"
    ):
        build("__CUDA_ARCH__ >= 750")


def test_lines_stay_where_they_are():
    """Has the text as many lines as before, and what follows an asm statement its own line, in macros too?"""
    macro = '#define EX2(o, x) asm("ex2.approx.f32 %0," \\\n    " %1;" \\\n    : "=f"(o) : "f"(x))\n'
    source = macro + 'void f() {\n  asm volatile("bar.sync 0;"  // all\n    ::: "memory");\n  here();\n}'
    lines = rewrite(Source(source, "cuda_sources")).text.split("\n")
    assert len(lines) == source.count("\n") + 1 and lines[6] == "  here();"
    assert lines[0].endswith("\\") and lines[1].strip() == "\\" and "ex2_approx" in lines[0]


def test_host_sources_and_words_to_the_compiler_are_left_alone():
    """Is asm with nothing in it kept, and is that of cpp_sources the host's?"""
    empty = 'void f() { asm volatile("" ::: "memory"); }'
    assert rewrite(Source(empty, "cuda_sources")).text == empty
    host = 'void f() { asm volatile("pause"); }'
    assert rewrite(Source(host, "cpp_sources"), cuda=False).text == host
