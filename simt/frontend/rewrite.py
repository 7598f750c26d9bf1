"""Rewrite CUDA C++ to C++ that g++ compiles with simt's headers. Every line keeps its number; columns may change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from simt.frontend.built_ins import refuse_assigned_built_ins
from simt.frontend.declarations import Kernel
from simt.frontend.dropped_calls import mark_dropped
from simt.frontend.flexible_arrays import mark_flexible_arrays
from simt.frontend.hidden_casts import hide_casts
from simt.frontend.host_calls import refuse_host_calls
from simt.frontend.launches import rewrite_erased_kernels, rewrite_launches, rewrite_pointer_launches
from simt.frontend.local_marks import mark_locals
from simt.frontend.missing_returns import mark_ends
from simt.frontend.ptx import translate
from simt.frontend.refuse import refuse
from simt.frontend.returned_values import find_returned, store_returned
from simt.frontend.shared_memory import rewrite_alignment, rewrite_shared
from simt.frontend.source import Source
from simt.frontend.tokens import Token, blank, find_closing, find_next, flatten, get_text
from simt.frontend.unrolled import unroll
from simt.frontend.whole_values import store_whole

# Qualifiers without a meaning on a CPU, and their replacements.
_QUALIFIERS = {
    "__global__": "",
    "__device__": "",
    "__host__": "",
    "__constant__": "",
    "__managed__": "",
    "__grid_constant__": "",
    "__forceinline__": "inline",  # or more: _replace_qualifiers()
    "__noinline__": "__attribute__((__noinline__))",
}
# What takes the address of a kernel as a void*.
_BY_ADDRESS = ("cudaKernelNodeParams", "cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelExC")
_ASSERTIONS = ("assert", "CUDA_KERNEL_ASSERT")
# torch's names for the GPU, and those for the CPU, where the tensors are.
_PLACES = {"is_cuda": "is_cpu", "kCUDA": "kCPU"}


@dataclass
class Rewritten:
    """The C++ text, with as many lines as its source, and the names that it defines."""

    source: Source
    text: str
    kernels: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)  # static variables in shared memory
    constants: list[str] = field(default_factory=list)  # variables in constant memory
    host: list[str] = field(default_factory=list)  # variables that only the host can use
    ptx: int = 0  # the compute capability, times 10, that its inline PTX needs; 0: no inline PTX


def rewrite(
    source: Source,
    cuda: bool = True,
    checked: bool = False,
    unrolled: bool = False,
    known: Mapping[str, Kernel] | None = None,
) -> Rewritten:
    """Rewrite one source.

    cuda: False for C++ sources, in which only torch's names for the GPU change. checked: for a checked build, poison
    local variables without a value, name dynamic shared memory, and mark calls whose result is ignored. unrolled:
    unroll loops of constant length, and where wgmma is used, inline what nvcc is forced to inline. known: kernels of
    other files of the same program, which this file may launch.
    Raises Unsupported if the source uses a feature that cannot run on the CPU, CompileError for PTX, calls and
    assignments in device code that nvcc refuses too.
    """
    refuse(source)
    tokens = source.copy_tokens()
    if not cuda:
        _rename_places(tokens, source)
        return Rewritten(source, _join(tokens, source))
    refuse_host_calls(source)
    refuse_assigned_built_ins(source)
    launched = {**(known or {}), **source.kernels}
    rewrite_launches(tokens, source, launched)
    rewrite_pointer_launches(tokens, launched)
    if not source.words.isdisjoint(_BY_ADDRESS):
        rewrite_erased_kernels(tokens, launched)
    shared, ends = rewrite_shared(tokens, source, checked)
    # By its own choice g++ does not inline a function with a wgmma, which writes up to 128 registers. The arrays that
    # such a function takes by reference would be counted as local memory.
    inlines = unrolled and "wgmma" in source.text
    _replace_qualifiers(tokens, "inline __attribute__((always_inline))" if inlines else "inline")
    store_whole(tokens)
    if checked:
        returned = find_returned(tokens, source)
        _call_copies(tokens)
        hide_casts(tokens, source)
        mark_locals(tokens, source)
        mark_dropped(tokens, source)
        mark_flexible_arrays(tokens, source)
        mark_ends(tokens, source)
        store_returned(tokens, returned)
    if unrolled:
        unroll(tokens, source)
    _rename_places(tokens, source)
    _rename_clock(tokens, source)
    # Without an initial value g++ would construct an array of a class, such as half, at a thread's first use.
    for bracket in ends:
        bracket.text += " = {}" if bracket.text == "]" else ""
    ptx = translate(tokens, source)  # last: its operands may contain anything that the passes above rewrite
    text = _join(tokens, source)
    return Rewritten(source, text, list(source.kernels), shared, source.constants, source.host_variables, ptx)


# What rewritten text calls in namespace simt. Each has a second name with a _ at its end (simt/include/simt/aliases.h).
_CALLED = frozenset(
    "Dropped Site config dynamic_shared erase instance launch local named print reach_end returned whole".split()
)


def _join(tokens: list[Token], source: Source) -> str:
    text = "".join(t.text for t in tokens)
    if hidden := _CALLED & source.macros:  # the preprocessor would replace these names
        text = re.sub(rf"::simt::({'|'.join(sorted(hidden))})\b", r"::simt::\1_", text)
    assert text.count("\n") == source.text.count("\n"), "a line was added or lost"
    return text


# ---- qualifiers ----


def _replace_qualifiers(tokens: list[Token], force_inline: str) -> None:
    """Replace CUDA's qualifiers of functions and variables. force_inline: the replacement of __forceinline__."""
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text == "__forceinline__" and _is_inline_already(tokens, i):
            token.text = ""
        elif token.text == "__forceinline__":
            token.text = force_inline
        elif token.text in _QUALIFIERS:
            token.text = _QUALIFIERS[token.text]
        elif token.text == "__launch_bounds__":
            end = find_closing(tokens, find_next(tokens, i)) if get_text(tokens, find_next(tokens, i)) == "(" else i
            blank(tokens, i, end + 1)
        elif token.text == "__align__":
            rewrite_alignment(tokens, i)


def _is_inline_already(tokens: list[Token], i: int) -> bool:
    """Return whether the declaration of the __forceinline__ at i also has inline, or is that of a lambda."""
    for step in (1, -1):
        j = find_next(tokens, i, step)
        while j >= 0 and (tokens[j].text in ("static", "constexpr", "") or tokens[j].text in _QUALIFIERS):
            j = find_next(tokens, j, step)
        if get_text(tokens, j) in ("inline", "__inline__", "__inline") or (step < 0 and get_text(tokens, j) == "]"):
            return True
    return False


# ---- copies ----


def _call_copies(tokens: list[Token]) -> None:
    """Replace the compiler's own copies, which report no access, by the functions of the C library."""
    for token in tokens:
        if token.kind == "word" and token.text in ("__builtin_memcpy", "__builtin_memmove", "__builtin_memset"):
            token.text = token.text.removeprefix("__builtin_")


# ---- names of the GPU, printf, assert ----


def _rename_places(tokens: list[Token], source: Source) -> None:
    """Replace torch's names for the GPU by those for the CPU, and printf and assert by simt's."""
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        before_at = find_next(tokens, i, -1)
        before, after = get_text(tokens, before_at), get_text(tokens, find_next(tokens, i))
        if token.text in _PLACES:
            token.text = _PLACES[token.text]
            if token.text == "is_cpu":
                _drop_type_call(tokens, i)
        elif (
            token.text == "CUDA"
            and before == "::"
            and get_text(tokens, find_next(tokens, before_at, -1)) in ("DeviceType", "Backend")
        ):
            token.text = "CPU"
        elif token.text == "cuda" and before == "." and after == "(":
            token.text = "cpu"
        elif token.text in ("Device", "device") and after == "(":
            literal = find_next(tokens, find_next(tokens, i))
            if tokens[literal].kind == "string" and tokens[literal].text.startswith('"cuda'):
                tokens[literal].text = '"cpu"'
        elif token.text == "printf" and before not in (".", "->"):
            if before == "::":
                owner = find_next(tokens, before_at, -1)
                tokens[before_at].text = ""
                if get_text(tokens, owner) == "std":
                    tokens[owner].text = ""
            token.text = "::simt::print"
        elif token.text in _ASSERTIONS and after == "(" and before not in (".", "->", "::", "define"):
            _rewrite_assertion(tokens, source, i)


def _rewrite_assertion(tokens: list[Token], source: Source, i: int) -> None:
    """Pass the text of the condition to simt's macro, since the passes above have rewritten the condition itself."""
    opening = find_next(tokens, i)
    closing = find_closing(source.tokens, opening)
    if i in source.directives or closing < 0:  # in a macro only the compiler knows the condition
        if tokens[i].text == "assert":
            tokens[i].text = "SIMT_ASSERT"
        return
    text = flatten(source.tokens[opening + 1 : closing])
    tokens[i].text = "SIMT_ASSERT_TEXT"
    tokens[opening].kind, tokens[opening].text = "rewritten", f"({json.dumps(text, ensure_ascii=False)}, "
    tokens[closing].kind = "rewritten"


def _rename_clock(tokens: list[Token], source: Source) -> None:
    """Replace clock() in device code, which counts the GPU's cycles there, by a call of clock64(). A macro may be used
    on both sides.
    """
    if "clock" not in source.words or "clock" in source.macros:
        return
    for first, last in source.bodies:
        for i in range(first, last):
            _rename_clock_at(tokens, i, "(::clock_t)::clock64")
    for i in source.directives:
        _rename_clock_at(tokens, i, "::simt::clock_of_either")


def _rename_clock_at(tokens: list[Token], i: int, name: str) -> None:
    opening, qualifier = find_next(tokens, i), find_next(tokens, i, -1)
    if tokens[i].text != "clock" or get_text(tokens, opening) != "(":
        return
    if get_text(tokens, find_next(tokens, opening)) != ")" or get_text(tokens, qualifier) in (".", "->"):
        return
    if get_text(tokens, qualifier) == "::":
        scope = find_next(tokens, qualifier, -1)
        if scope >= 0 and tokens[scope].kind == "word" and tokens[scope].text != "return":
            return
        blank(tokens, qualifier, qualifier + 1)
    tokens[i].kind, tokens[i].text = "rewritten", name


def _drop_type_call(tokens: list[Token], i: int) -> None:
    """Rewrite x.type().is_cuda() to x.is_cpu(): the type object has no such method."""
    dot = find_next(tokens, i, -1)
    closing = find_next(tokens, dot, -1)
    opening = find_next(tokens, closing, -1)
    name = find_next(tokens, opening, -1)
    if get_text(tokens, closing) == ")" and get_text(tokens, opening) == "(" and get_text(tokens, name) == "type":
        blank(tokens, find_next(tokens, name, -1), dot)
