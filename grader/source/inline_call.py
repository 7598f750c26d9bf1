"""What a file passes to load_inline, as far as it says so in literals, without running it."""

from __future__ import annotations

import ast
import dataclasses

from grader.source import syntax


@dataclasses.dataclass(frozen=True)
class Binding:
    """The sources that declare an extension's functions, and the names to bind."""

    cpp_sources: tuple[str, ...]
    functions: tuple[str, ...]


def read_bindings(text: str) -> list[Binding]:
    """Return what each call of load_inline in a file's text binds with `functions=`, where that can be read.

    Values are strings or lists of strings, or names that are given one at the file's top level.
    """
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    constants: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            constants |= {one.id: statement.value for one in statement.targets if isinstance(one, ast.Name)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_load_inline(node.func)]
    found = []
    for call in calls:
        given = {keyword.arg: _read_strings(keyword.value, constants) for keyword in call.keywords}
        sources, functions = given.get("cpp_sources"), given.get("functions")
        if sources and functions:
            found.append(Binding(sources, functions))
    return found


def _is_load_inline(function: ast.expr) -> bool:
    return getattr(function, "id", getattr(function, "attr", "")) == "load_inline"


def _read_strings(value: ast.expr, constants: dict[str, ast.expr]) -> tuple[str, ...]:
    """Return the string, or the strings of a list; nothing for anything else."""
    if isinstance(value, ast.Name):
        value = constants.get(value.id, value)
    try:
        read = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ()
    read = [read] if isinstance(read, str) else read
    return tuple(read) if isinstance(read, (list, tuple)) and all(isinstance(one, str) for one in read) else ()
