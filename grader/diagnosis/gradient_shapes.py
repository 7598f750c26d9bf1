"""Trace a gradient of a wrong shape, or of another argument, from backward's return into the C++ that it calls."""

from __future__ import annotations

import ast
import dataclasses
import re

from grader.source.autograd import Own, Student, assigned, is_none, last_of, returns
from grader.source.cpp import Function, Text
from grader.source.places import Place
from grader.verdict import Stage


@dataclasses.dataclass(frozen=True)
class Step:
    """A step on the way from backward's return to where a tensor is made.

    name: of the variable there. made: the way ends here. sizes: lines that set variables of its shape.
    """

    line: int
    name: str = ""
    made: bool = False
    sizes: tuple[int, ...] = ()


# as grader.judging.gradient_messages words it
OF_SHAPE = re.compile(r"of shape \[(?P<got>.*?)\] as value (?P<number>\d+), and .* has the shape \[(?P<wanted>.*?)\]")


def find_shape(stage: Stage, student: Student) -> Place | None:
    """Find the line that allocates the tensor of a wrong shape, or that returns it as another one's gradient."""
    shapes, own = OF_SHAPE.search(stage.message), student.own
    k = int(shapes["number"]) - 1 if shapes else _accused(stage, student)
    if own is None or k is None or not 0 <= k < len(own.arguments) or not (way := _trace_returned(student, own, k)):
        return None
    if place := _find_renamed(own, way, k):
        return place
    words = f"Value {k + 1} that `backward` returns, the gradient of `{own.arguments[k]}`, gets its shape here:"
    is_rank_wrong = shapes is not None and shapes["got"].count(",") != shapes["wanted"].count(",")
    if way[-1].sizes and not is_rank_wrong:  # it may be a size that is wrong
        return Place(words, (), beside=(way[-1].line, *way[-1].sizes))
    return Place(words, (way[-1].line,))


def find_exchanged(stage: Stage, student: Student) -> Place | None:
    """Find where two gradients are swapped in backward's return, by their names."""
    own, k = student.own, _accused(stage, student)
    if own is None or k is None or k >= len(own.arguments) or not (way := _trace_returned(student, own, k)):
        return None
    return _find_renamed(own, way, k)


def trace_gradient(student: Student, name: str) -> list[str]:
    """Return the names that the gradient of an input or a weight has in backward and in the C++ that it calls."""
    own, place = student.own, student.place_of(name)
    if own is None or place is None or place[0] >= len(own.arguments):
        return []
    return [step.name for step in _trace_returned(student, own, place[0]) if step.name]


def _accused(stage: Stage, student: Student) -> int | None:
    """Return the number of the argument of apply whose gradient the evidence is about."""
    name = stage.evidence[0].gradient if stage.evidence else None
    place = student.place_of(name) if name else None
    return place[0] if place else None


def _trace_returned(student: Student, own: Own, k: int) -> list[Step]:
    """Return the steps from backward's return to where its value k is made; [] where that is not known."""
    alone = len(own.arguments) == 1
    ways = [
        _trace(student, own, value, None if alone and not isinstance(value, (ast.Tuple, ast.List)) else k, line)
        for value, line in returns(own.backward)
    ]
    return ways[0] if ways and ways[0] and ways[0][-1].made and all(way[1:] == ways[0][1:] for way in ways) else []


def _find_renamed(own: Own, way: list[Step], k: int) -> Place | None:
    """Find a variable on the way whose name says that it is another argument's gradient, and where it got it."""
    for at, step in enumerate(way):
        if (other := _belongs(step.name, own.arguments)) and other != own.arguments[k]:
            lines = {
                step.line,
                *(before.line for before in way[:at] if _belongs(before.name, own.arguments) == own.arguments[k]),
            }
            return Place(
                f"`backward` returns `{step.name}` as value {k + 1}, which must be the gradient of "
                f"`{own.arguments[k]}`:",
                tuple(sorted(lines)),
            )
    return None


def _belongs(name: str, arguments: list[str]) -> str:
    """Return the argument whose gradient a variable is, by its name: gx, grad_x, dx, x_grad are x's."""
    starts, ends = ("g", "g_", "d", "d_", "grad", "grad_"), ("_grad", "_g")
    called = {
        one: {f"{start}{one}".lower() for start in starts} | {f"{one}{end}".lower() for end in ends}
        for one in arguments
    }
    found = [one for one in arguments if name.lower() in called[one]]
    return found[0] if len(found) == 1 else ""


def _trace(student: Student, own: Own, node: ast.expr, k: int | None, line: int) -> list[Step]:
    """Return the steps from an expression of backward to where its element k (None: itself) is made; [] if unknown."""
    if isinstance(node, (ast.Tuple, ast.List)) and k is not None:
        starred = [at for at, one in enumerate(node.elts) if isinstance(one, ast.Starred)]
        unpacked = len(own.arguments) - (len(node.elts) - 1)  # values that a starred one stands for
        if len(starred) > 1 or (starred and unpacked < 0):
            return []
        if starred and starred[0] <= k < starred[0] + unpacked:
            value = node.elts[starred[0]]
            assert isinstance(value, ast.Starred)
            return _trace(student, own, value.value, k - starred[0], value.lineno)
        k -= unpacked - 1 if starred and k >= starred[0] else 0
        return _trace(student, own, node.elts[k], None, node.elts[k].lineno) if k < len(node.elts) else []
    if isinstance(node, ast.IfExp):
        return _trace(student, own, node.orelse if is_none(node.body) else node.body, k, line)
    if isinstance(node, ast.Call) and last_of(node.func) in ("tuple", "list") and len(node.args) == 1:
        return _trace(student, own, _unzipped(own, node.args[0]), k, line)
    if (function := student.called(node)) is not None:
        known = next((set(origins) for other, origins in student.handed(own) if other is function), set())
        return _trace_cpp(student.text, function, k, set(function.names) - known)
    if isinstance(node, ast.Subscript) and k is None:
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _trace(student, own, node.value, place, line) if isinstance(place, int) and place >= 0 else []
    if isinstance(node, ast.Name):
        made = assigned(own.backward, node.id)
        if len(made) > 1 or (not made and node.id not in own.incoming):
            return []
        if not made:
            return [Step(line, node.id, True)]
        place, value, at = made[0]
        if (place or 0) < 0:
            return []
        further = _trace(student, own, value, place if place is not None else k, at)
        return [Step(line, node.id), *further] if further else []
    return [Step(node.lineno, "", True)] if k is None and isinstance(node, (ast.Call, ast.BinOp)) else []


def _unzipped(own: Own, node: ast.expr) -> ast.expr:
    """Return (gx, gw) of `g if needs else None for g, needs in zip((gx, gw), …)`, any other expression as it is."""
    if not isinstance(node, (ast.GeneratorExp, ast.ListComp)) or len(node.generators) != 1:
        return node
    target, pairs = node.generators[0].target, node.generators[0].iter
    if isinstance(pairs, ast.Name) and len(made := assigned(own.backward, pairs.id)) == 1 and made[0][0] is None:
        pairs = made[0][1]
    chosen = node.elt.body if isinstance(node.elt, ast.IfExp) else node.elt
    zipped = pairs.args[:1] if isinstance(pairs, ast.Call) and last_of(pairs.func) == "zip" else []
    first = target.elts[:1] if isinstance(target, ast.Tuple) else []
    if zipped and first and isinstance(chosen, ast.Name) and last_of(first[0]) == chosen.id:
        return zipped[0]
    return node


def _trace_cpp(text: Text, function: Function, k: int | None, unknown: set[str]) -> list[Step]:
    """Return the steps from a C++ function's return to where element k is made, or [].

    A return for tensors without elements is left out. unknown: parameters of unknown origin; a shape computed from
    theirs cannot be traced further.
    """
    empty = re.compile(r"if\s*\([^;{}]*==\s*0\s*\)\s*\{?\s*$")
    returned = [(parts, at) for parts, at in text.returns(function) if not empty.search(text.code[function.start : at])]
    if (
        not returned
        or (k is None and len(returned[0][0]) > 1)
        or any((k or 0) >= len(parts) or parts[k or 0] != returned[0][0][k or 0] for parts, _ in returned)
    ):
        return []
    value, line = returned[-1][0][k or 0], text.line(returned[-1][1])
    if not re.fullmatch(r"\w+", value):
        return [] if _helper(text, value) else [Step(line, "", True)]
    made = text.made(value, function)
    if not made:
        return [Step(line, value, True)] if value in function.names else []
    if len(made) > 1 or _helper(text, made[0][0]):
        return []
    words = set(re.findall(r"(?<![\w.:])[A-Za-z_]\w*", re.sub(r"\w+\s*\.\s*options\(\)", "", made[0][0])))
    if words & unknown:
        return []
    sizes = {text.line(at) for word in words - set(function.names) for _, at in text.made(word, function)}
    return [Step(line, value), Step(text.line(made[0][1]), value, True, tuple(sorted(sizes)))]


def _helper(text: Text, value: str) -> bool:
    """Return whether a value comes from a function of the student, whose arguments may be the wrong ones."""
    called = re.match(r"(\w+)\s*\(", value)
    return called is not None and called[1] in text.functions
