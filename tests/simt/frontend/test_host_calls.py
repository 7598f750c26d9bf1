"""Calls that end or replace the host's process are refused in device code, as by nvcc, with their line."""

from __future__ import annotations

import pytest

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source


def _in_kernel(text: str) -> str:
    return f"__global__ void k(float* x) {{\n  {text}\n}}"


LEAVES = "; write `return;` in the kernel to end a thread."


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        *(
            (_in_kernel(f"{name}(0);"), 2, f"Device code cannot call `{name}`, which ends a program on the CPU{LEAVES}")
            for name in (
                *("exit", "_exit", "_Exit", "quick_exit", "pthread_exit"),
                *("std::exit", "std::_Exit", "std::quick_exit", "std::terminate"),
            )
        ),
        (_in_kernel("x[0] = (::exit(0), 0);"), 2, "`exit`"),
        (_in_kernel("if (x) return (exit)(0);"), 2, "`exit`"),
        (_in_kernel("if (x) x[0] = 1; else\n  std :: exit(0);"), 3, "`std::exit`"),
        (_in_kernel("auto f = [] { exit(0); };"), 2, "`exit`"),
        (_in_kernel("longjmp(b, 1);"), 2, "`longjmp`, which jumps to another function on the CPU" + LEAVES),
        (_in_kernel("siglongjmp(b, 1);"), 2, "`siglongjmp`"),
        (_in_kernel("x && kill(0, 9);"), 2, "`kill`, a function of the CPU's operating system; remove the call."),
        (_in_kernel("raise(9);"), 2, "`raise`"),
        (_in_kernel("execve(0, 0, 0);"), 2, "`execve`"),
        (_in_kernel("x[0] = (throw 1, 0);"), 2, "Device code cannot throw exceptions" + LEAVES),
        (_in_kernel("try { } catch (...) { }"), 2, "Device code cannot catch exceptions; remove `try` and `catch`."),
        ("__host__ __device__ void f() {\n  throw 1;\n}", 2, "cannot throw"),
        ("template <class T>\n__device__ int f(T t) {\n  exit(0);\n}", 3, "`exit`"),
        ("#define STOP(code) exit(code)\n#define END STOP(0)\n" + _in_kernel("END;"), 4, "`exit`"),
        ("namespace a { struct S { void f(); }; }\n" + _in_kernel("exit(0);"), 3, "`exit`"),
    ],
)
def test_a_call_that_ends_the_process_is_refused(source, line, says):
    """Is each one error, with its line, as nvcc's is?"""
    with pytest.raises(simt.CompileError) as caught:
        rewrite(Source(source, "cuda_sources"))
    (error,) = caught.value.diagnostics
    assert (error.source, error.line, error.severity) == ("cuda_sources", line, "error")
    assert says in error.message and not isinstance(caught.value, simt.Unsupported)


@pytest.mark.parametrize(
    "source",
    [
        "void f() { exit(0); throw 1; }\n" + _in_kernel("x[0] = 1;"),
        "__host__ __device__ void f() {\n  exit(0);\n}",  # a warning of nvcc's
        "__device__ void exit(int code) { }\n" + _in_kernel("exit(0);"),
        "__device__ float* kill(float* x) { return x; }\n" + _in_kernel("kill(x)[0] = 1;"),
        "#define exit(code) return\n" + _in_kernel("exit(0);"),
        _in_kernel("auto exit = [](int) {}; exit(0);"),
        "__device__ void f(float kill) { float raise = kill; }",
        "namespace maze { __device__ void leave(); }\n" + _in_kernel("maze::exit(0); room.exit(0); door->exit(0);"),
        _in_kernel('printf("exit(0)"); // exit(0)'),
        "#define CHECK(c) if (c) exit(1)\nvoid f() { CHECK(1); }\n" + _in_kernel("x[0] = 1;"),
        "#ifdef __CUDA_ARCH__\n#define STOP __trap()\n#else\n#define STOP exit(1)\n#endif\n" + _in_kernel("STOP;"),
    ],
)
def test_what_nvcc_accepts_is_kept(source):
    """Are the host's calls, the student's own names, members, and macros of both sides left alone?"""
    rewrite(Source(source, "cuda_sources"))


def test_a_call_that_the_preprocessor_leaves_out_is_kept():
    """Does a call behind an #if that is not taken build?"""
    source = "__global__ void k(int* x) {\n#ifdef NEVER\n  exit(0);\n#endif\n  x[0] = 1;\n}\nvoid run() {}"
    assert simt.load_inline("untaken_exit", "void run();", source, functions=["run"])
