"""Find mistakes that compile in a few lines of CUDA, whatever the lines are for, and explain them."""

from __future__ import annotations

import re

from grader.source.cpp import closing, split

_TYPE = r"(?:int|unsigned|long|short|size_t|int64_t|float|double|auto)"
_QUOTIENT = re.compile(
    r"(?:\(\s*(?:float|double)\s*\)|float|double)\s*\(\s*(?P<a>\w+)\s*/\s*(?P<b>\w+)\s*\)|(?P<c>\w+)\s*/\s*(?P<d>\w+)"
)
_ASSIGNED = re.compile(r"(?:\b(?:if|while)\s*\(|\bfor\s*\([^;()]*;|&&|\|\|)\s*(\w+)\s*=(?!=)\s*(\w+)")
_BARRIER = re.compile(r"\b(__sync(?:threads|warp))\b(?!\s*\()")
_DECLARATION = re.compile(rf"\b{_TYPE}\s+(\w+\s*=[^;]*)")
_SHUFFLE = re.compile(r"\b(__shfl(?:_up|_down|_xor)?_sync)\s*\(")


def find(code: str) -> str:
    """Return the sentences on the first such mistake; empty if there is none. code: without comments."""
    return next(filter(None, (look(code) for look in (_ceil, _assignment, _barrier, _of_itself, _shuffle))), "")


def _ceil(code: str) -> str:
    for call in re.finditer(r"\bceilf?\s*\(", code):
        match = _QUOTIENT.fullmatch(code[call.end() : closing(code, call.end() - 1)].strip())
        if match:
            a, b = match["a"] or match["c"], match["b"] or match["d"]
            if not _is_declared(code, "float|double", a, b):
                return (
                    f"`{a} / {b}` divides integers, which drops the remainder before `ceil` can round up. Write "
                    f"`({a} + {b} - 1) / {b}`."
                )
    return ""


def _assignment(code: str) -> str:
    if match := _ASSIGNED.search(code):
        return (
            f"`{match[1]} = {match[2]}` stores `{match[2]}` in `{match[1]}` and compares nothing. Compare with `==`, "
            "`<` or `>=`."
        )
    return ""


def _barrier(code: str) -> str:
    match = _BARRIER.search(code)
    return f"`{match[1]}` without brackets only names the function. Write `{match[1]}()` to call it." if match else ""


def _of_itself(code: str) -> str:
    for declaration in _DECLARATION.finditer(code):
        for part, _ in split(declaration[1]):
            name, _, value = (text.strip() for text in part.partition("="))
            if name.isidentifier() and re.search(rf"(?<![\w.:])(?<!->){name}\b(?!\s*\()", value):
                return (
                    f"`{name}` is computed from itself, before it has a value. Compute it from what is known here, "
                    "such as `threadIdx.x`."
                )
    return ""


def _shuffle(code: str) -> str:
    """Explain a shuffle whose second argument is an integer, and whose third is a float."""
    for call in _SHUFFLE.finditer(code):
        parts = [part.strip() for part, _ in split(code[call.end() : closing(code, call.end() - 1)])]
        if len(parts) < 3 or not _is_declared(code, "float|double", parts[2]):
            continue
        if parts[1].isdigit() or _is_declared(code, "int|unsigned", parts[1]):
            return (
                f"The arguments of `{call[1]}` are the mask, the value and the distance, in this order. Here "
                f"`{parts[1]}` stands in the value's place."
            )
    return ""


def _is_declared(code: str, types: str, *names: str) -> bool:
    """Return whether one of the names is declared with one of the types."""
    return any(
        re.search(rf"\b(?:{types})\s+(?:[^;(){{}}]*,\s*)?{re.escape(name)}\s*[=;,)]", code)
        for name in names
        if name.isidentifier()
    )
