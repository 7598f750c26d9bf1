"""Mark calls of CUDA functions whose result the program ignores, so that a checked build reports those that fail."""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_closing, find_next, find_opening, get_text

# Functions that fail when the program uses them wrongly. cudaGetLastError() returns the error of a launch.
_CALLS = {
    *(f"cudaMalloc{kind}" for kind in ("", "Async", "Host", "Managed", "Pitch")),
    *(f"cudaFree{kind}" for kind in ("", "Async", "Host")),
    *(f"cudaMemcpy{kind}{when}" for kind in ("", "2D", "ToSymbol", "FromSymbol") for when in ("", "Async")),
    *("cudaMemset", "cudaMemsetAsync", "cudaMemset2D", "cudaFuncSetAttribute", "cudaSetDevice"),
    *(f"cudaLaunch{kind}" for kind in ("Kernel", "CooperativeKernel", "KernelEx", "KernelExC")),
    *("cudaEventElapsedTime", "cudaEventDestroy", "cudaStreamDestroy"),
}  # fmt: skip


def mark_dropped(tokens: list[Token], source: Source) -> None:
    """Add ", ::simt::Dropped(name)" to each such call that is a whole statement.

    tokens: a copy of the source's tokens.
    """
    calls = _CALLS - source.macros
    for i, token in enumerate(tokens):
        if token.kind != "word" or token.text not in calls or not _begins_statement(tokens, source, i):
            continue
        opening = find_next(tokens, i)
        end = find_closing(tokens, opening) if get_text(tokens, opening) == "(" else -1
        if end >= 0 and get_text(tokens, find_next(tokens, end)) == ";":
            tokens[end].kind, tokens[end].text = "rewritten", f'), ::simt::Dropped("{token.text}")'


def _begins_statement(tokens: list[Token], source: Source, i: int) -> bool:
    before = find_next(tokens, i, -1)
    while before in source.directives and i not in source.directives:  # an #ifdef stands before the call
        before = find_next(tokens, before, -1)
    if get_text(tokens, before) == "::" and get_text(tokens, find_next(tokens, before, -1)) in (";", "{", "}"):
        return True
    if get_text(tokens, before) != ")":  # a ")" ends the head of an if, or a cast: (void)cudaFree(p) is meant
        return get_text(tokens, before)[-1:] in (";", "{", "}") or get_text(tokens, before) in ("else", "do")
    return get_text(tokens, find_next(tokens, find_opening(tokens, before, "(", ")"), -1)) in ("if", "for", "while")
