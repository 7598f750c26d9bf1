"""Python's parser, made safe for a second thread."""

from __future__ import annotations

import ast

TRIES = 3


def parse(source: str, name: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """ast.parse. Python before 3.11.8 counts depth for all threads together: if one parses while another is in the middle, that one gets
    a SystemError ("AST constructor recursion depth mismatch", CPython issue 106905) for a source that is sound, and none the next time."""
    for left in reversed(range(TRIES)):
        try:
            return ast.parse(source, name, mode)
        except SystemError:
            if not left:
                raise
