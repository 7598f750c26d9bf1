"""Marks calls of CUDA's functions whose result a program drops, so that a checked build sees those that fail."""

from __future__ import annotations

from .tokens import Token, closing_of, next_token, opening_of, text_at

# What may fail by the program's own fault. A launch's error is looked at otherwise, by cudaGetLastError().
_CALLS = {
    *(f"cudaMalloc{kind}" for kind in ("", "Async", "Host", "Managed", "Pitch")),
    *(f"cudaFree{kind}" for kind in ("", "Async", "Host")),
    *(f"cudaMemcpy{kind}{when}" for kind in ("", "2D", "ToSymbol", "FromSymbol") for when in ("", "Async")),
    *("cudaMemset", "cudaMemsetAsync", "cudaMemset2D", "cudaFuncSetAttribute", "cudaSetDevice"),
    *("cudaEventElapsedTime", "cudaEventDestroy", "cudaStreamDestroy"),
}  # fmt: skip


def mark_dropped(tokens: list[Token]) -> None:
    """Adds ", ::simt::Dropped(name)" to each such call that is a statement of its own."""
    defines = [i for i, t in enumerate(tokens) if t.text == "define" and text_at(tokens, next_token(tokens, i, -1)) == "#"]
    calls = _CALLS - {text_at(tokens, next_token(tokens, i)) for i in defines}
    for i, token in enumerate(tokens):
        if token.kind != "word" or token.text not in calls or not _begins_statement(tokens, i):
            continue
        opening = next_token(tokens, i)
        end = closing_of(tokens, opening) if text_at(tokens, opening) == "(" else -1
        if end >= 0 and text_at(tokens, next_token(tokens, end)) == ";":
            tokens[end].kind, tokens[end].text = "rewritten", f'), ::simt::Dropped("{token.text}")'


def _begins_statement(tokens: list[Token], i: int) -> bool:
    before = next_token(tokens, i, -1)
    if text_at(tokens, before) == "::" and text_at(tokens, next_token(tokens, before, -1)) in (";", "{", "}"):
        return True
    if text_at(tokens, before) != ")":  # else after if (…), for (…), and not after a cast: (void)cudaFree(p) means it
        return text_at(tokens, before)[-1:] in (";", "{", "}") or text_at(tokens, before) in ("else", "do")
    return text_at(tokens, next_token(tokens, opening_of(tokens, before, "(", ")"), -1)) in ("if", "for", "while")
