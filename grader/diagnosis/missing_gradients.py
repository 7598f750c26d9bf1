"""Find where a gradient is lost: autograd does not see the kernel, or backward returns None."""

from __future__ import annotations

import ast
import re

from grader.source.autograd import Student, is_none, last_of, only_none, parts_of, returns
from grader.source.places import Place
from grader.verdict import Stage

OFF = re.compile(r"no_grad|inference_mode|set_grad_enabled\(False\)")


def find_missing(stage: Stage, student: Student) -> Place | None:
    """Find where autograd does not see the kernel, or where backward returns None."""
    if student.model is None:
        return None
    if "carries no gradient" in stage.message:
        return _find_unconnected(student)
    names = [one.gradient for one in stage.evidence if one.gradient]
    places = [place for name in names if (place := _find_denied(student, name))]
    if not names or len(places) < len(names):
        return None
    return Place(
        " ".join(dict.fromkeys(place.words for place in places)),
        tuple(dict.fromkeys(line for place in places for line in place.lines)),
    )


def _find_unconnected(student: Student) -> Place | None:
    if applied := student.applied():
        off = _without_history(student, applied)
        return Place("Autograd does not record what this line computes:", tuple(off)) if off else None
    direct = student.direct()
    if not direct:
        return None
    lines = tuple(sorted({node.lineno for node in direct}))
    if not student.owns:
        return Place(
            "This line calls the kernel without a torch.autograd.Function, so autograd does not record it:", lines
        )
    names = " or ".join(f"`{own.name}.apply(…)`" for own in student.owns)
    return Place(f"This line calls the kernel directly, so autograd does not record it. Call {names} instead:", lines)


def _without_history(student: Student, applied: list[ast.Call]) -> list[int]:
    """Return the lines that put apply under no_grad, detach its result, or mark it as not differentiable."""
    found = set()
    for method in find_methods(student.model, {"forward"}) if student.model else []:
        found |= {one.lineno for one in method.decorator_list if OFF.search(ast.unparse(one))}
        for node in ast.walk(method):
            if isinstance(node, ast.With) and any(OFF.search(ast.unparse(item)) for item in node.items):
                found |= {node.lineno} if any(one in applied for body in node.body for one in ast.walk(body)) else set()
            if isinstance(node, ast.Return) and node.value is not None:
                detached = (isinstance(node.value, ast.Call) and last_of(node.value.func) == "detach") or last_of(
                    node.value
                ) == "data"
                found |= {node.lineno} if detached else set()
    calls = [node for own in student.owns for node in ast.walk(own.setup or own.forward) if isinstance(node, ast.Call)]
    return sorted(
        found
        | {node.lineno for node in calls if last_of(node.func) == "mark_non_differentiable" and len(student.owns) == 1}
    )


def _find_denied(student: Student, name: str) -> Place | None:
    """Find the None that backward returns for an input or a weight, or the argument of apply that is detached."""
    own, place = student.own, student.place_of(name)
    if own is None or place is None:
        return None
    k, argument = place
    if re.search(r"\.detach\(\)|\.data\b(?!_ptr)", ast.unparse(argument)):
        return Place(
            f"`{ast.unparse(argument)}` is detached from autograd, so `{name}` gets no gradient:", (argument.lineno,)
        )
    called = own.arguments[k] if k < len(own.arguments) else name
    lines = []
    for value, line in returns(own.backward):
        parts = parts_of(value)
        if k >= len(parts) or any(isinstance(part, ast.Starred) for part in parts[: k + 1]):
            return None
        part = parts[k]
        if is_none(part):
            lines.append(line)
        elif isinstance(part, ast.Name) and (never := only_none(own.backward, part.id)):
            lines += never
        else:
            return None
    if not lines:
        return None
    words = f"`backward` returns None as value {k + 1}. Return the gradient of `{called}` there."
    return Place(words, tuple(lines))


def find_methods(cls: ast.ClassDef, names: set[str]) -> list[ast.FunctionDef]:
    """Return the methods of a class with these names."""
    return [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name in names]
