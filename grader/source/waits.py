"""Find where a submission's host code makes the CPU wait for the GPU in each call, without running it."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator

from grader.source import syntax
from grader.source.cpp import Function, Text

REMOVE = "Remove the call: PyTorch waits where a result is read."
COPY = (
    "Copy with `cudaMemcpyAsync` on PyTorch's current stream, or once, outside of `forward`; pass a single number as "
    "an argument of the kernel."
)
KEEP = "Keep the value on the GPU, in a tensor that the next kernel reads."
ALLOCATE = "Allocate the memory with `torch::empty`, which does not wait and keeps it for the next call."
# Calls of C++ that return only when the GPU has finished: a pattern of the name, and what to do instead.
CALLS = (
    (r"(?<![\w:])cuda(?:Device|Stream|Event|Thread)Synchronize", REMOVE),
    (r"(?<![\w:])(?:torch|c10|at)::cuda::(?:device_)?synchronize", REMOVE),
    (r"(?<![\w:])cudaMemcpy(?:2D|ToSymbol|FromSymbol)?", COPY),
    (r"(?<![\w:])cudaFree", ALLOCATE),
    (r"\.\s*synchronize", REMOVE),
    (r"\.\s*(?:item|cpu)", KEEP),
)
METHODS = {"synchronize": REMOVE, "item": KEEP, "cpu": KEEP, "tolist": KEEP}  # the same of Python
ENTRIES = ("forward", "backward")  # methods that each call runs
ON_GPU = "DeviceToDevice"  # a copy that the CPU does not wait for


@dataclasses.dataclass(frozen=True)
class Wait:
    """A call that makes the CPU wait for the GPU. line: of the file; call: as in "cudaDeviceSynchronize()"; instead:
    what to do, in a sentence.
    """

    line: int
    call: str
    instead: str


def find(source: str) -> list[Wait]:
    """Return the waits of every forward or backward, in the order of lines; those behind a condition are left out."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    reached = _reach(tree)
    found = [wait for function in reached for wait in _find_in_python(function)]
    text = Text(source)
    called = {name for function in reached for name in _list_names(function)}
    for function in _reach_cpp(text, called):
        found += _find_in_cpp(text, function)
    return sorted(set(found), key=lambda one: (one.line, one.call))


# ---- Python ----


def _reach(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return forward and backward of all classes but Model, and the functions of the file that these name."""
    functions: dict[str, ast.FunctionDef] = {}
    waiting: list[ast.FunctionDef] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef) and node.name != "Model":
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            functions |= {one.name: one for one in methods if not one.name.startswith("__")}
            waiting += [one for one in methods if one.name in ENTRIES]
    reached: list[ast.FunctionDef] = []
    while waiting:
        function = waiting.pop()
        if function not in reached:
            reached.append(function)
            waiting += [functions[name] for name in _list_names(function) if name in functions]
    return reached


def _list_names(function: ast.FunctionDef) -> set[str]:
    nodes = list(ast.walk(function))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }


def _find_in_python(function: ast.FunctionDef) -> Iterator[Wait]:
    for statement in function.body:
        for node in _walk_always(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                call = ast.unparse(node.func) if node.func.attr == "synchronize" else f".{node.func.attr}"
                yield Wait(node.lineno, f"{call}()", METHODS[node.func.attr])


def _walk_always(node: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes below one that run whenever it does: of an if its condition alone."""
    yield node
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return
    below = [node.test] if isinstance(node, (ast.If, ast.IfExp)) else ast.iter_child_nodes(node)
    for child in below:
        if not isinstance(child, ast.ExceptHandler):
            yield from _walk_always(child)


# ---- C++ ----


def _reach_cpp(text: Text, called: set[str]) -> list[Function]:
    """Return the host functions that Python calls by these names, and those that they name."""
    waiting = [function for name in sorted(called) if (function := text.function(name)) is not None]
    reached: list[Function] = []
    while waiting:
        function = waiting.pop()
        if function.kernel or function in reached:
            continue
        reached.append(function)
        names = set(re.findall(r"\b[A-Za-z_]\w*\b", text.body(function)))
        waiting += [text.functions[name] for name in sorted(names) if name in text.functions]
    return reached


def _find_in_cpp(text: Text, function: Function) -> Iterator[Wait]:
    for pattern, instead in CALLS:
        for match in text.find(rf"{pattern}(?:\s*<[^<>();]*>)?\s*\(", function):
            arguments = text.code[match.end() : text.code.find(";", match.end())]
            if not _is_conditional(text, function, match.start()) and ON_GPU not in arguments:
                name = re.sub(r"\s|<.*|\($", "", match[0])
                yield Wait(text.line(match.start()), f"{name}()", instead)


def _is_conditional(text: Text, function: Function, at: int) -> bool:
    """Return whether an offset of a function is only reached under a condition."""
    directives = re.findall(r"^\s*#\s*(if|endif)", text.code[function.start : at], re.MULTILINE)
    if directives.count("if") > directives.count("endif"):
        return True
    for begin, end in text.heads(function, at):
        head = text.code[begin:end]
        if re.match(r"\s*(?:else|switch|case|default)\b", head):
            return True
        opened = re.match(r"\s*if\s*(?:constexpr\s*)?\(", head)
        if opened and (end < at or _is_closed(head[opened.end() :])):
            return True
    return False


def _is_closed(text: str) -> bool:
    """Return whether the bracket that was opened before this text is closed in it."""
    depth = 1
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return True
    return False
