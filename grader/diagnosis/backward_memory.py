"""Find where backward writes to tensors of others, assumes contiguous memory, or reads what was overwritten."""

from __future__ import annotations

import ast
import re

from grader.diagnosis.missing_gradients import find_methods
from grader.source.autograd import (
    INCOMING,
    RESULT,
    SAME,
    Origin,
    Own,
    Student,
    assigned,
    last_of,
    parameters,
    parts_of,
)
from grader.source.cpp import POINTER, Function, Text, closing, split
from grader.source.places import Place
from grader.verdict import Stage

DEPTH = 3  # C++ functions that call each other


def find_modified(stage: Stage, student: Student) -> Place | None:
    """Find the line that gives a tensor of others a second name, or passes it to a kernel that writes to it."""
    own = student.own
    if own is None:
        return None
    wanted = {what for what in (INCOMING, RESULT) if what in stage.message}
    for name in re.findall(r"`([\w.]+)`", stage.message.partition(":")[0]):
        if (place := student.place_of(name)) and place[0] < len(own.arguments):
            wanted.add(own.arguments[place[0]])
    in_python = _written_in_python(student, own, wanted)
    if in_python:
        return Place("This line writes to a tensor that `backward` did not allocate:", tuple(in_python))
    for function, origins in student.handed(own):
        for name, origin in origins.items():
            if origin.name in wanted and (place := _written(student.text, function, name, origin)):
                return place
    return None


def _written_in_python(student: Student, own: Own, wanted: set[str]) -> list[int]:
    """Return the lines of backward with `gy *= …`, `gy.mul_(…)`, `gy[…] = …` on a tensor that it did not allocate."""
    found = []
    for node in ast.walk(own.backward):
        if isinstance(node, ast.Assign):
            targets = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target.value if isinstance(node.target, ast.Subscript) else node.target]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and re.fullmatch(r"[a-z]\w*[a-z]_", node.func.attr)
        ):
            targets = [node.func.value]
        else:
            continue
        for target in targets:
            origin = student.origin(own, target) or (
                Origin(INCOMING) if last_of(target) in own.incoming and isinstance(node, ast.AugAssign) else None
            )
            found += [node.lineno] if origin and origin.name in wanted else []
    return sorted(set(found))


def _written(text: Text, function: Function, name: str, origin: Origin) -> Place | None:
    """Find how a C++ function writes to one of its parameters."""
    if any(re.search(r"clone\s*\(|::(?:empty|zeros)", value) for value, _ in text.made(name, function)):
        return None
    names = {name: 0}  # every name of the tensor, and the line that introduces it
    same = rf"(?:\.\s*(?:{'|'.join(sorted(SAME))})\s*\((?:[^;()]|\([^;()]*\))*\)\s*)*"
    plain = rf"(?:auto|Tensor)&?\s+(\w+)\s*=\s*(\w+)\s*{same};"
    for match in text.find(plain, function):
        if match[2] in names:
            names[match[1]] = text.line(match.start())
    for launch in text.launches(function):
        kernel = text.functions.get(launch.kernel)
        if kernel is None:
            continue
        for (argument, at), (kind, parameter) in zip(launch.arguments, kernel.parameters):
            used = re.match(rf"(\w+)\s*{POINTER}", argument)
            if not used or used[1] not in names or "const" in kind or not (stores := text.stores(kernel, parameter)):
                continue
            if names[used[1]]:
                return Place(
                    f"`{used[1]}` is only a second name for `{name}`, and `{kernel.name}` writes to it:",
                    (names[used[1]],),
                )
            if origin.alias:
                return Place(
                    "This line only gives a second name to a tensor that `backward` did not allocate, and a kernel "
                    "writes to it:",
                    (origin.alias,),
                )
            if parameter == name:
                return Place(
                    f"`{kernel.name}` writes to `{parameter}`, which `backward` did not allocate:", tuple(stores)
                )
            return Place(
                f"`{kernel.name}` writes to its parameter `{parameter}`, and this call passes `{name}`, which "
                "`backward` did not allocate:",
                (text.line(at),),
            )
    in_place = [
        match
        for one in names
        for match in text.find(rf"(?<![\w.]){one}\s*(?:\.\s*[a-z]\w*[a-z]_\s*\(|[-+*/]=)", function)
    ]
    if in_place:
        return Place(
            f"This line writes to `{name}`, which `backward` did not allocate:",
            tuple(sorted({text.line(match.start()) for match in in_place})),
        )
    return None


def find_strided(stage: Stage, student: Student) -> Place | None:
    """Find the line that takes the pointer of an incoming gradient which was not made contiguous."""
    own = student.own
    if own is None:
        return None
    lines, names = set(), set()
    for function, origins in student.handed(own):
        for name, origin in origins.items():
            if origin.name == INCOMING and not origin.whole:
                lines |= _bare_pointers(student.text, function, name)
                names |= {name} if _bare_pointers(student.text, function, name) else set()
    named = " and ".join(f"`{name}`" for name in sorted(names))
    them = "it" if len(names) == 1 else "them"
    words = f"{named} must be contiguous here, and no line before makes {them} so:"
    return Place(words, tuple(sorted(lines))) if lines else None


def _bare_pointers(text: Text, function: Function, name: str, depth: int = 0) -> set[int]:
    """Return the lines that take the pointer of a parameter before it is made contiguous, here or in a callee."""
    if text.find(rf"(?<![\w.]){name}\s*\.\s*(?:strides?|is_contiguous|packed_accessor\w*|accessor)\b", function):
        return set()
    made = text.find(rf"(?<![\w.]){name}\s*=(?!=)[^;]*\b(?:contiguous|clone)\s*\(", function)
    until = made[0].start() if made else function.end
    found = {
        text.line(match.start())
        for match in text.find(rf"(?<![\w.]){name}\s*{POINTER}", function)
        if match.start() < until
    }
    for match in text.find(rf"(?:auto|Tensor)&?\s+(\w+)\s*=\s*{name}\s*;", function):
        if match.start() < until and depth < DEPTH:
            found |= _bare_pointers(text, function, match[1], depth + 1)
    for match in text.find(r"(?<![\w.>])(\w+)\s*(?:<[\w:, ]*>)?\s*\(", function):
        helper = text.functions.get(match[1])
        if helper is None or helper.kernel or match.start() > until or depth == DEPTH:
            continue
        arguments = split(text.code[match.end() : closing(text.code, match.end() - 1)])
        for parameter, (argument, at) in zip(helper.names, arguments):
            if argument.strip() == name and _bare_pointers(text, helper, parameter, depth + 1):
                found.add(text.line(match.end() + at + len(argument) - len(argument.lstrip())))
    return found


def find_overwritten(stage: Stage, student: Student) -> Place | None:
    """Find where forward keeps a tensor that all calls share: in a class, the model, a global or static variable."""
    own = student.own
    if own is None or student.model is None:
        return None
    behind = next(iter(parameters(own.backward)), "")
    loads = [node for node in ast.walk(own.backward) if isinstance(getattr(node, "ctx", None), ast.Load)]
    read = {node.attr for node in loads if isinstance(node, ast.Attribute) and not _of(node, behind)}
    loaded = {node.id for node in loads if isinstance(node, ast.Name)}
    found = set()
    for method in [own.forward, *([own.setup] if own.setup else []), *find_methods(student.model, {"forward"})]:
        ctx = next(iter(parameters(method)), "") if method is (own.setup or own.forward) else ""
        shared = {name for node in ast.walk(method) if isinstance(node, ast.Global) for name in node.names}
        for node in ast.walk(method):
            if not isinstance(node, ast.Assign):
                continue
            for one in (one for target in node.targets for one in parts_of(target)):
                held = one.value if isinstance(one, ast.Subscript) else one
                once = False
                if isinstance(held, ast.Attribute):
                    once = held.attr in read and not _of(held, ctx)
                elif isinstance(held, ast.Name) and held.id in loaded:
                    once = held.id in shared or (held is not one and not _local(method, held.id))
                found |= {node.lineno} if once else set()
    if found:
        words = "All calls share what is kept here, so the next `forward` overwrites it before `backward` reads it."
        return Place(words, tuple(sorted(found)))
    return _kept_in_cpp(student, own)


def _kept_in_cpp(student: Student, own: Own) -> Place | None:
    text = student.text
    static = re.compile(r"\bstatic\s+(?:std::\w+<[^;=]*>|(?:torch|at)::Tensor)\s+(\w+)[^;]*;")
    ahead = [function for node in ast.walk(own.forward) if (function := student.called(node))]
    behind = " ".join(text.body(function) for node in ast.walk(own.backward) if (function := student.called(node)))
    for function in ahead:
        returned = {part for parts, _ in text.returns(function) for part in parts}
        lines = [
            text.line(match.start())
            for match in static.finditer(text.code, function.start, function.end)
            if match[1] in returned
        ]
        if lines:
            words = (
                "All calls share this tensor, and `forward` returns it: the next `forward` overwrites it before "
                "`backward` reads it."
            )
            return Place(words, tuple(lines))
    inside = [(function.start, function.end) for function in text.functions.values()]
    for match in re.finditer(r"(?:torch|at)::Tensor\s+(\w+)\s*(?:;|=)", text.code):
        if any(start <= match.start() < end for start, end in inside) or not re.search(rf"\b{match[1]}\b", behind):
            continue
        lines = sorted({text.line(at) for function in ahead for _, at in text.made(match[1], function)})
        if lines:
            return Place(
                f"All calls share `{match[1]}`: the next `forward` overwrites it before `backward` reads it.",
                tuple(lines),
            )
    return None


def _of(node: ast.Attribute, name: str) -> bool:
    """Return whether it is name.something itself."""
    return isinstance(node.value, ast.Name) and node.value.id == name


def _local(function: ast.FunctionDef, name: str) -> bool:
    return name in parameters(function) or bool(assigned(function, name))
