"""The macros by which cuda_fp16.h and cuda_bf16.h hide operators and conversions: do simt's headers hide the same?

Each statement is a function of its own in one file, of which the compiler's messages name the lines. nvcc, where it is
installed, is asked about the same statements.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from simt.toolchain.compilers import find_compiler, flags
from simt.toolchain.half_macros import TORCH_FLAGS, list_hiding, read_directives
from simt.toolchain.headers import SIMT, include_flags

pytestmark = pytest.mark.slow

NUMBERS = {
    "f": "float", "d": "double", "i": "int", "u": "unsigned", "s": "short", "us": "unsigned short", "l": "long",
    "ul": "unsigned long", "ll": "long long", "ull": "unsigned long long", "ch": "char", "sc": "signed char",
    "uc": "unsigned char", "t": "bool",
}  # fmt: skip
PARAMETERS = (
    "__half h, __half g, __half2 p, __half2 q, __nv_bfloat16 b, __nv_bfloat16 c, __nv_bfloat162 v, __nv_bfloat162 w, "
    "float* array, " + ", ".join(f"{type} {name}" for name, type in NUMBERS.items())
)


def _list_operators(a: str, b: str) -> list[str]:
    binary = "+ - * / == != < <= > >= += -= *= /=".split()
    return [*(f"{a} {op} {b};" for op in binary), f"+{a};", f"-{a};", f"++{a};", f"--{a};", f"{a}++;", f"{a}--;"]


def _list_conversions(type: str, x: str) -> list[str]:
    """Return statements that compile only with the conversions of a type, of which x is one."""
    return [
        *(f"{type} z = {n}; {type} y({n}); ({type}){n};" for n in NUMBERS),
        *(f"{other} z = {x};" for other in NUMBERS.values()),
        *(f"({other}){x};" for other in NUMBERS.values()),
        *(f"{x} = {n};" for n in NUMBERS if n not in ("l", "ul")),  # which are ambiguous
        f"if ({x}) f = 1;", f"!{x};", f"{x} ? 1 : 0;", f"expf({x});", f"{type}2 z = {{f, f}};", f"{type}2 z(f, f);",
        f"{type} z[2] = {{0.0f, 1.0f}};", f"const {type}& z = f;", f"float z{{{x}}};",
        f"__hlt({x}, 0.0f);", f"atomicAdd(&{x}, 1.0f);", f"printf(\"%f\", static_cast<float>({x}));",
    ]  # fmt: skip


# What each macro hides. Statements that need two of them are in OTHERS.
HIDDEN = {
    "__CUDA_NO_HALF_OPERATORS__": _list_operators("h", "g"),
    "__CUDA_NO_HALF2_OPERATORS__": _list_operators("p", "q"),
    "__CUDA_NO_BFLOAT16_OPERATORS__": _list_operators("b", "c"),
    "__CUDA_NO_BFLOAT162_OPERATORS__": _list_operators("v", "w"),
    "__CUDA_NO_HALF_CONVERSIONS__": [*_list_conversions("__half", "h"), "__half z(b);", "(__half)b;"],
    "__CUDA_NO_BFLOAT16_CONVERSIONS__": [
        *_list_conversions("__nv_bfloat16", "b"),
        "__nv_bfloat16 z(h);",
        "(__nv_bfloat16)h;",
    ],
}
# What no macro hides.
EXPLICIT = (
    [
        statement
        for type, name, x in (("__half", "half", "h"), ("__nv_bfloat16", "bfloat16", "b"))
        for statement in (
            f"__hadd({x}, {x}); __hsub({x}, {x}); __hmul({x}, {x}); __hdiv({x}, {x}); __hfma({x}, {x}, {x});",
            f"__hneg({x}); __habs({x}); hexp({x}); hsqrt({x}); __hmax({x}, {x}); __hisnan({x});",
            f"__hlt({x}, {x}); __heq({x}, {x}); __hge({x}, {x});",
            f"f = __{name}2float({x}); {x} = __float2{name}(f); {x} = __double2{name}(d); {x} = __int2{name}_rn(i);",
            f"{type}_raw z = {x}; {type} y = z; y = {x}; y = z; {type} zeros[4] = {{}};",
            f"{type}2 z = {{{x}, {x}}}; {type}2 y({x}, {x}); z.x = {x}; {type}2_raw raw = z;",
            f"atomicAdd(&{x}, {x}); __ldg(&{x}); {type} z = __shfl_down_sync(~0u, {x}, 1);",
        )
    ]
    + ["p = __hadd2(p, q); p = __hmul2(p, q); p = __h2div(p, q); __hbeq2(p, q); float2 z = __half22float2(p);"]
    + ["atomicAdd(&p, q); atomicAdd(&v, w); h = __low2half(p); p = __half2half2(h); p = __floats2half2_rn(f, f);"]
)
OTHERS = [
    *(
        statement
        for x in ("h", "b")
        for n in NUMBERS
        for statement in (f"{x} + {n};", f"{n} < {x};", f"{n} += {x};", f"t ? {x} : {n};", f"{x} = {n}; {x} *= {n};")
    ),
    "h = b;", "b = h;", "h + b;", "h == b;", "__half z = b;", "h = max(h, g);", "f = max(f, h);", "h = {};", "h % g;",
    "h << 1;", "h && g;", "array[h];", "array[h] = f;", "switch (h) { default: break; }", "while (h) break;", "p + h;",
    "p * f;", "p = h;", "p == h;", "p.x + p.y;", "f = p.x;", "p.x = f;", "h = h + g;", "h = __hadd(h, g) * g;",
    "f = __half2float(h + g);", "h = -f;", "h = __float2half(f) / 2;", "f = f > h ? f : h;", "fmaxf(h, f);",
    "__hadd(h, f);", "__hadd(b, f);", "isnan(h);",
    "__half2float(f);", "__half2float(b);", "__float2half(h);", "__float2half(i);", "__half2half2(f);",
    "__halves2half2(h, f);", "make_half2(f, f);", "make_float2(h, h);", "float2 z = {h, h};", "l = (long)h;",
    "unsigned short z = h;", "const float z = h;", "auto z = h * g;", "int z = h < g;",
    "f = __shfl_xor_sync(~0u, h, 1);",
]  # fmt: skip
STATEMENTS = list(dict.fromkeys([*(one for listed in HIDDEN.values() for one in listed), *EXPLICIT, *OTHERS]))
HEAD = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cstdio>\n"
SOURCE = HEAD + "".join(f"__device__ void f{n}({PARAMETERS}) {{ {one} }}\n" for n, one in enumerate(STATEMENTS))
TORCH = tuple(flag[2:] for flag in TORCH_FLAGS)
SETS = [(), TORCH, tuple(HIDDEN), *((macro,) for macro in HIDDEN)]


def _read_lines(output: str, pattern: str) -> set[str]:
    first = HEAD.count("\n") + 1
    return {STATEMENTS[int(line) - first] for line in re.findall(pattern, output, re.MULTILINE)}


@cache
def list_refused(macros: tuple[str, ...]) -> set[str]:
    """Return the statements that do not compile with simt's headers and these macros."""
    options = [f"-D{macro}" for macro in macros] + ["-include", str(SIMT / "include/simt/prelude_cuda.h")]
    options += ["-D__device__=", "-fsyntax-only", "-fmax-errors=0", "-x", "c++", "-"]
    command = [find_compiler()[0], *flags("plain"), *include_flags(shim=True), *options]
    done = subprocess.run(command, input=SOURCE, capture_output=True, text=True)
    return _read_lines(done.stderr, r"^<stdin>:(\d+):\d+: error: ")


@pytest.mark.parametrize("macro", HIDDEN)
def test_each_macro_hides_its_own(macro):
    """Are the statements of a macro refused with it, and those of the others not?"""
    refused = list_refused((macro,))
    assert set(HIDDEN[macro]) <= refused
    assert not refused & {one for other, listed in HIDDEN.items() if other != macro for one in listed}


@pytest.mark.parametrize("macros", SETS, ids=lambda macros: "+".join(macros) or "none")
def test_explicit_functions_stay(macros):
    """Is a function with a name of its own accepted with any macros?"""
    assert not list_refused(macros) & set(EXPLICIT)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize("macros", SETS, ids=lambda macros: "+".join(macros) or "none")
def test_nvcc_refuses_the_same(macros, tmp_path: Path):
    """Does nvcc refuse and accept the same statements?"""
    file = tmp_path / "statements.cu"
    file.write_text(SOURCE, encoding="utf-8")
    options = [*(f"-D{macro}" for macro in macros), "-std=c++20", "-arch=sm_90", "-Xcudafe", "--error_limit=100000"]
    done = subprocess.run(
        ["nvcc", *options, "-cubin", "-o", str(tmp_path / "statements.cubin"), str(file)],
        capture_output=True,
        text=True,
    )
    assert list_refused(macros) == _read_lines(done.stdout + done.stderr, r"statements\.cu\((\d+)\): error")


def test_the_last_flag_of_a_macro_counts():
    """Are the macros found that are defined after all flags, in each form, and are other macros left out?"""
    operators, conversions = "__CUDA_NO_HALF_OPERATORS__", "__CUDA_NO_HALF_CONVERSIONS__"
    assert set(list_hiding(TORCH_FLAGS)) == set(TORCH_FLAGS)
    assert list_hiding([*TORCH_FLAGS, *(f"-U{macro}" for macro in TORCH)]) == ()
    assert list_hiding([f"-D{operators}=1", "-U", operators, "-DN=1", "-D", conversions]) == (f"-D{conversions}",)
    assert list_hiding([f"-U{operators}", f"-D{operators}", f"-D{operators}2"]) == (f"-D{operators}",)


def test_directives_before_the_first_include():
    text = f"#undef {TORCH[0]}\n # define __CUDA_NO_HALF2_OPERATORS__ 1\n#include <cuda_fp16.h>\n#undef {TORCH[1]}\n"
    assert read_directives([text]) == [f"-U{TORCH[0]}", "-D__CUDA_NO_HALF2_OPERATORS__"]
