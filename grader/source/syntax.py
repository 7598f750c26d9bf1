"""Python's parser, made safe for a second thread, and its idea of a line."""

from __future__ import annotations

import ast
import contextlib
import re
from typing import Literal, cast, overload

TRIES = 3


@overload
def parse(source: str, name: str = ..., mode: Literal["exec"] = ...) -> ast.Module: ...
@overload
def parse(source: str, name: str = ..., *, mode: Literal["eval"]) -> ast.Expression: ...
def parse(source: str, name: str = "<unknown>", mode: Literal["exec", "eval"] = "exec") -> ast.Module | ast.Expression:
    """Return the syntax tree of a module or an expression, as ast.parse does.

    Python before 3.11.8 counts recursion depth for all threads together: if one parses while another is parsing, the
    other gets a SystemError ("AST constructor recursion depth mismatch", CPython issue 106905) for a valid source.
    Parsing again succeeds. What is nested too deeply for the parser's own stack is a RecursionError here too; Python
    raises MemoryError.
    """
    try:
        for _ in range(TRIES - 1):
            with contextlib.suppress(SystemError):
                return cast("ast.Module | ast.Expression", ast.parse(source, name, mode))
        return cast("ast.Module | ast.Expression", ast.parse(source, name, mode))
    except MemoryError:
        raise RecursionError("an expression is nested too deeply") from None


def split_lines(text: str) -> list[str]:
    """Return the lines of a program as Python and compilers count them. str.splitlines() also divides at form feeds,
    which some editors put between functions, and at other characters.
    """
    lines = re.split("\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]
