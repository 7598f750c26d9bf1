"""Find lines by the form of a kernel: what keeps elements from being stored, pointers, launches, sums of few bits."""

from __future__ import annotations

import ast
import re

from grader.source import syntax
from grader.source.cpp import Function, Text, closing
from grader.source.places import find_around

MOST_LINES = 3000  # of a file that is searched: a longer one takes the square of its length
MOST_STORES = 20  # that are looked at: each takes as long as the file has characters


def find_store_paths(source: str, stores: list[int]) -> list[int]:
    """Return of each store the line, the `if` and `for` around it, and the returns before it."""
    if source.count("\n") > MOST_LINES or len(stores) > MOST_STORES:
        return stores
    text = Text(source)
    found: list[int] = []
    for store in stores:
        kernel = text.around(store)
        heads = [one.line for one in find_around(source, store) if re.search(r"\b(?:if|for|while)\s*\(", one.head)]
        returns = text.find(r"\bif\s*\([^;{}]*\)\s*return\s*;", kernel) if kernel else []
        found += [*heads, *(n for match in returns if (n := text.line(match.start())) < store), store]
    return list(dict.fromkeys(found))


def find_tail_loops(source: str, stores: list[int]) -> list[int]:
    """Return the loops around stores that take several elements at a time and end where fewer are left."""
    if source.count("\n") > MOST_LINES:
        return []
    ends = re.compile(r"\bfor\s*\([^;]*\b(\w+)\s*=[^;]*;\s*\1\s*\+\s*(\d+)\s*<=?\s*\w+\s*;")
    return [one.line for store in stores[:MOST_STORES] for one in find_around(source, store) if ends.search(one.head)]


def find_one_each(source: str, stores: list[int]) -> list[int]:
    """Return where a store's index is the thread's own, and the store, if no loop takes the thread to further ones."""
    if source.count("\n") > MOST_LINES:
        return []
    text = Text(source)
    for store in stores[:MOST_STORES]:
        kernel = text.around(store)
        code = text.code.split("\n")
        if kernel is None or any(re.search(r"\b(?:for|while)\s*\(", one.head) for one in find_around(source, store)):
            continue
        for made in text.find(r"\bint\s+(\w+)\s*=\s*threadIdx\.x\s*;", kernel):
            index = re.search(rf"\[[^\]]*\b{made[1]}\b[^\]]*\]\s*=(?!=)", code[store - 1])
            if index and not text.find(rf"\b{made[1]}\s*\+=", kernel):
                return [text.line(made.start()), store]
    return []


def find_unmoved_inputs(source: str, stores: list[int]) -> list[int]:
    """Return the lines that move a kernel's output to the block's part, where no input is moved or indexed by it."""
    if source.count("\n") > MOST_LINES:
        return []
    text = Text(source)
    found = []
    for kernel in [one for one in text.functions.values() if one.kernel]:
        inputs = [name for kind, name in kernel.parameters if "const" in kind and "*" in kind]
        outputs = [name for kind, name in kernel.parameters if "const" not in kind and "*" in kind]
        if not inputs or any(_uses_block(text, kernel, name) for name in inputs):
            continue
        for name in outputs:
            moves = text.find(rf"(?<![\w.]){name}\s*(?:\+=|=\s*{name}\s*\+)[^;\n]*\bblockIdx\b", kernel)
            found += [text.line(match.start()) for match in moves]
    return found


def _uses_block(text: Text, kernel: Function, name: str) -> bool:
    """Return whether a pointer of a kernel is moved, or indexed by the block or by what is computed from it."""
    body = text.body(kernel)
    of_block = {"blockIdx"}
    assigned = re.findall(r"\b(\w+)\s*=(?!=)([^;]*)", body)
    while new := {
        made for made, value in assigned if made not in of_block and of_block & set(re.findall(r"\w+", value))
    }:
        of_block |= new
    moved = re.search(rf"(?<![\w.]){name}\s*\+=|(?<![\w.])\w+\s*=[^;=\n]*\b{name}\s*\+", body) is not None
    indices = re.findall(rf"(?<![\w.]){name}\s*\[([^\]\n]*)\]", body)
    return moved or any(of_block & set(re.findall(r"\w+", index)) for index in indices)


def find_fixed_launches(source: str, stores: list[int]) -> list[int]:
    """Return the launches of one block with a number of threads that is the same for any size."""
    if source.count("\n") > MOST_LINES:
        return []
    text = Text(source)
    one = re.compile(r"<<<\s*(?:dim3\()?\s*1\s*\)?\s*,\s*(?:\d+|[A-Z_\d]+)\s*(?:,[^>]*)?>>>")
    return [text.line(match.start()) for match in one.finditer(text.code)]


def find_half_sums(source: str, stores: list[int]) -> list[int]:
    """Return the declarations of variables of 16 bits in kernels that are added to again and again, and the sums."""
    if source.count("\n") > MOST_LINES:
        return []
    text = Text(source)
    declared = re.compile(r"\b(?:__half|half|__nv_bfloat16|nv_bfloat16)\s+(\w+)\s*(?:\[[^\]]*\])?\s*[;={]")
    for made in declared.finditer(text.code):
        function = text.around(text.line(made.start()))
        if function is None or not any(one.kernel for one in text.functions.values()):
            continue
        name, index = made[1], r"(?:\s*\[[^\]]*\])?"
        sums = rf"=(?!=)[^;\n]*\b{name}\b[^;\n]*\+|\+=|=\s*__h(?:add|fma)\w*\([^;\n]*\b{name}\b"
        added = [text.line(match.start()) for match in text.find(rf"(?<![\w.]){name}{index}\s*(?:{sums})", function)]
        if added:
            return sorted({text.line(made.start()), *added})
    return []


def find_same_calls(source: str, stores: list[int]) -> list[int]:
    """Return the lines of `backward` that return just what the extension's function of `forward` returns."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[int] = []
    for cls in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
        if "forward" not in methods or "backward" not in methods:
            continue
        known = {ast.dump(call.func) for call in _list_calls(methods["forward"])}
        for node in ast.walk(methods["backward"]):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and ast.dump(node.value.func) in known:
                found.append(node.lineno)
        if len(_list_calls(methods["backward"])) != 1:
            return []
    return found


def _list_calls(method: ast.FunctionDef) -> list[ast.Call]:
    """Return the calls `module.f(...)` in a method, but for those of its context and of tensors."""
    own = {argument.arg for argument in method.args.args}
    return [
        node
        for node in ast.walk(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id not in own
    ]


def find_unread_results(source: str, stores: list[int]) -> list[int]:
    """Return the last statement with a tensor of a host function, if that call reads and writes it."""
    if source.count("\n") > MOST_LINES:
        return []
    text = Text(source)
    found = []
    for function in [one for one in text.functions.values() if not one.kernel]:
        for made in text.find(r"\bauto\s+(\w+)\s*=\s*torch::(?:empty|zeros)\w*\s*\(", function):
            uses = text.find(rf"(?<![\w.]){made[1]}\b", function)
            if len(uses) < 3 or any(re.search(rf"\b{made[1]}\b", values[0]) for values, _ in text.returns(function)):
                continue
            last = uses[-1].start()
            begin = max(text.code.rfind(mark, 0, last) for mark in ";{}") + 1
            call = re.compile(r"\s*(\w+)\s*(?:<<<[^;]*?>>>)?\s*\(").match(text.code, begin)
            inside = text.code[begin : closing(text.code, call.end() - 1)] if call else ""
            if call and inside.count(f"{made[1]}.") == 2 and call[1] in text.functions:
                found.append(text.line(last))
    return found
