"""Where a failure of the stage "gradient" comes from, as the source tells it: from the torch.autograd.Function into the C++ it calls.

Only what follows from the text is named: a None in the place of a gradient, the line that makes the tensor of a wrong shape, the pointer that is
taken of a tensor that may lie in pieces. Where the text leaves two ways open there is no place.
"""

from __future__ import annotations

import ast
import dataclasses
import re

from grader import syntax
from grader.autograd import INCOMING, RESULT, SAME, Origin, Own, Student, assigned, is_none, last_of, only_none, parameters, parts_of, returns
from grader.cpp import POINTER, Function, Text, split
from grader.places import Place
from grader.verdict import Reason, Stage, StageName

OFF = re.compile(r"no_grad|inference_mode|set_grad_enabled\(False\)")
DEPTH = 3  # C++ functions that call each other


def of(stage: Stage, source: str) -> Place | None:
    """The lines that are wrong; None where the text does not tell."""
    if stage.name is not StageName.gradient or stage.reason not in LOOKS:
        return None
    try:
        return LOOKS[stage.reason](stage, Student(syntax.parse(source), Text(source)))
    except (SyntaxError, ValueError, RecursionError):  # a = b; b = a has no end
        return None


# --- no gradient ------------------------------------------------------------------------------------------------------


def _missing(stage: Stage, student: Student) -> Place | None:
    """Nothing tells autograd of the kernel, or backward says that there is no gradient."""
    if student.model is None:
        return None
    if "carries no gradient" in stage.message:
        return _untold(student)
    names = [one.gradient for one in stage.evidence if one.gradient]
    places = [_denied(student, name) for name in names]
    if not places or None in places:
        return None
    return Place(" ".join(dict.fromkeys(place.words for place in places)), tuple(dict.fromkeys(line for place in places for line in place.lines)))


def _untold(student: Student) -> Place | None:
    if applied := student.applied():
        off = _without_history(student, applied)
        return Place("What goes through this line has no history for autograd:", tuple(off)) if off else None
    direct = student.direct()
    if not direct:
        return None
    lines = tuple(sorted({node.lineno for node in direct}))
    if not student.owns:
        return Place("The kernel is called here without a torch.autograd.Function, so that autograd learns nothing of it:", lines)
    names = " or ".join(f"`{own.name}.apply(…)`" for own in student.owns)
    return Place(f"The kernel is called here directly, so that autograd learns nothing of it. No line calls {names}:", lines)


def _without_history(student: Student, applied: list[ast.Call]) -> list[int]:
    """Lines that put apply under no_grad, return its result detached, or say in the Function that it has no gradient."""
    found = set()
    for method in _methods(student.model, {"forward"}):
        found |= {one.lineno for one in method.decorator_list if OFF.search(ast.unparse(one))}
        for node in ast.walk(method):
            if isinstance(node, ast.With) and any(OFF.search(ast.unparse(item)) for item in node.items):
                found |= {node.lineno} if any(one in applied for body in node.body for one in ast.walk(body)) else set()
            if isinstance(node, ast.Return) and node.value is not None:
                detached = (isinstance(node.value, ast.Call) and last_of(node.value.func) == "detach") or last_of(node.value) == "data"
                found |= {node.lineno} if detached else set()
    calls = [node for own in student.owns for node in ast.walk(own.setup or own.forward) if isinstance(node, ast.Call)]
    return sorted(found | {node.lineno for node in calls if last_of(node.func) == "mark_non_differentiable" and len(student.owns) == 1})


def _denied(student: Student, name: str) -> Place | None:
    """The return of a None for an input or a weight, or the argument of apply that is cut off from its history."""
    own, place = student.own, student.place_of(name)
    if own is None or place is None:
        return None
    k, argument = place
    if re.search(r"\.detach\(\)|\.data\b(?!_ptr)", ast.unparse(argument)):
        return Place(f"`{ast.unparse(argument)}` has no history, so no gradient goes back to `{name}`:", (argument.lineno,))
    called = own.arguments[k] if k < len(own.arguments) else name
    lines = []
    for back in returns(own.backward):
        parts = parts_of(back.value)
        if k >= len(parts) or any(isinstance(part, ast.Starred) for part in parts[: k + 1]):
            return None
        if is_none(parts[k]):
            lines.append(back.lineno)
        elif isinstance(parts[k], ast.Name) and (never := only_none(own.backward, parts[k].id)):
            lines += never
        else:
            return None
    if not lines:
        return None
    said = f"backward returns None in place {k + 1}, where the gradient of `{called}` belongs: None says that there is no gradient."
    return Place(said, tuple(lines))


# --- a gradient of another shape --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Step:
    """On the way from backward's return to where a tensor is made. name: of the variable that stands there. made: the way ends here.
    sizes: lines where variables are set that its shape is made of."""

    line: int
    name: str = ""
    made: bool = False
    sizes: tuple[int, ...] = ()


def _shape(stage: Stage, student: Student) -> Place | None:
    """The line that makes the tensor which backward returns for one argument, or that puts it in another one's place."""
    number, own = re.search(r"for argument (\d+) of its forward", stage.message), student.own
    k = int(number[1]) - 1 if number else _accused(stage, student)
    if own is None or k is None or not 0 <= k < len(own.arguments) or not (way := _returned(student, own, k)):
        return None
    if place := _exchanged(own, way, k):
        return place
    said = f"What backward returns in place {k + 1}, as the gradient of `{own.arguments[k]}`, gets its shape here:"
    ranks = re.search(r"of shape \[(.*?)\] for argument \d+ of its forward, whose shape is \[(.*?)\]", stage.message)
    if way[-1].sizes and not (ranks and ranks[1].count(",") != ranks[2].count(",")):  # it may be a size that is wrong
        return Place(said, (), beside=(way[-1].line, *way[-1].sizes))
    return Place(said, (way[-1].line,))


def _wrong(stage: Stage, student: Student) -> Place | None:
    """Where two gradients stand in each other's place, as their names tell."""
    own, k = student.own, _accused(stage, student)
    if own is None or k is None or k >= len(own.arguments) or not (way := _returned(student, own, k)):
        return None
    return _exchanged(own, way, k)


def _accused(stage: Stage, student: Student) -> int | None:
    """The place in apply's arguments of what the evidence's gradient belongs to."""
    name = stage.evidence[0].gradient if stage.evidence else None
    place = student.place_of(name) if name else None
    return place[0] if place else None


def _returned(student: Student, own: Own, k: int) -> list[Step]:
    """The way from backward's return to where what it returns in place k is made; [] where that is not known."""
    alone = len(own.arguments) == 1
    values = [(back.value, back.lineno) for back in returns(own.backward)]
    ways = [_way(student, own, value, None if alone and not isinstance(value, (ast.Tuple, ast.List)) else k, line) for value, line in values]
    return ways[0] if ways and ways[0] and ways[0][-1].made and all(way[1:] == ways[0][1:] for way in ways) else []


def _exchanged(own: Own, way: list[Step], k: int) -> Place | None:
    """The line on which a variable stands whose name says that it is the gradient of something else; the one before it that says otherwise too."""
    for at, step in enumerate(way):
        if (other := _belongs(step.name, own.arguments)) and other != own.arguments[k]:
            lines = {step.line, *(before.line for before in way[:at] if _belongs(before.name, own.arguments) == own.arguments[k])}
            return Place(f"`{step.name}` is handed back in place {k + 1}, where the gradient of `{own.arguments[k]}` belongs:", tuple(sorted(lines)))
    return None


def _belongs(name: str, arguments: list[str]) -> str:
    """The argument whose gradient a variable is, by its name: gx, grad_x, dx, x_grad are x's."""
    starts, ends = ("g", "g_", "d", "d_", "grad", "grad_"), ("_grad", "_g")
    called = {one: {f"{start}{one}".lower() for start in starts} | {f"{one}{end}".lower() for end in ends} for one in arguments}
    found = [one for one in arguments if name.lower() in called[one]]
    return found[0] if len(found) == 1 else ""


def _way(student: Student, own: Own, node: ast.expr, k: int | None, line: int) -> list[Step]:
    """From an expression of backward to where element k of it (None: itself) is made; [] where that is not known."""
    if isinstance(node, (ast.Tuple, ast.List)) and k is not None:
        if k >= len(node.elts) or any(isinstance(one, ast.Starred) for one in node.elts[: k + 1]):
            return []
        return _way(student, own, node.elts[k], None, node.elts[k].lineno)
    if isinstance(node, ast.IfExp):
        return _way(student, own, node.orelse if is_none(node.body) else node.body, k, line)
    if isinstance(node, ast.Call) and last_of(node.func) in ("tuple", "list") and len(node.args) == 1:
        return _way(student, own, _unzipped(own, node.args[0]), k, line)
    if (function := student.called(node)) is not None:
        known = next((set(origins) for other, origins in student.handed(own) if other is function), set())
        return _cpp_way(student.text, function, k, set(function.names) - known)
    if isinstance(node, ast.Subscript) and k is None:
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _way(student, own, node.value, place, line) if isinstance(place, int) and place >= 0 else []
    if isinstance(node, ast.Name):
        made = assigned(own.backward, node.id)
        if len(made) > 1 or (not made and node.id not in own.incoming):
            return []
        if not made:
            return [Step(line, node.id, True)]
        place, value, at = made[0]
        if (place or 0) < 0:
            return []
        further = _way(student, own, value, place if place is not None else k, at)
        return [Step(line, node.id), *further] if further else []
    return [Step(node.lineno, "", True)] if k is None and isinstance(node, (ast.Call, ast.BinOp)) else []


def _unzipped(own: Own, node: ast.expr) -> ast.expr:
    """For `g if needs else None for g, needs in zip((gx, gw), …)` the tuple (gx, gw); else the expression itself."""
    if not isinstance(node, (ast.GeneratorExp, ast.ListComp)) or len(node.generators) != 1:
        return node
    target, pairs = node.generators[0].target, node.generators[0].iter
    if isinstance(pairs, ast.Name) and len(made := assigned(own.backward, pairs.id)) == 1 and made[0][0] is None:
        pairs = made[0][1]
    chosen = node.elt.body if isinstance(node.elt, ast.IfExp) else node.elt
    zipped = isinstance(pairs, ast.Call) and last_of(pairs.func) == "zip" and bool(pairs.args) and isinstance(target, ast.Tuple) and bool(target.elts)
    return pairs.args[0] if zipped and isinstance(chosen, ast.Name) and last_of(target.elts[0]) == chosen.id else node


def _cpp_way(text: Text, function: Function, k: int | None, unknown: set[str]) -> list[Step]:
    """From a C++ function's return to where element k is made. A return for tensors without elements is left out.

    unknown: parameters of which it is not known what they are; where the shape is made of theirs, the way goes on, nobody knows where.
    """
    empty = re.compile(r"if\s*\([^;{}]*==\s*0\s*\)\s*\{?\s*$")
    returned = [(parts, at) for parts, at in text.returns(function) if not empty.search(text.code[function.start : at])]
    if not returned or (k is None and len(returned[0][0]) > 1) or any((k or 0) >= len(parts) or parts[k or 0] != returned[0][0][k or 0] for parts, _ in returned):
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
    """Whether a value comes from a function of the student's own, which may have been handed the wrong thing."""
    called = re.match(r"(\w+)\s*\(", value)
    return called is not None and called[1] in text.functions


# --- exceptions -------------------------------------------------------------------------------------------------------


def _raised(stage: Stage, student: Student) -> Place | None:
    """torch says that backward returned too few or too many gradients, or was handed more than it takes."""
    count = re.search(r"function (\w+)Backward returned an incorrect number of gradients \(expected (\d+), got (\d+)\)", stage.message)
    own = next((own for own in student.owns if count and own.name == count[1]), None)
    if own is not None:
        wanted, got = int(count[2]), int(count[3])
        lines = [back.lineno for back in returns(own.backward) if not isinstance(back.value, (ast.Tuple, ast.List)) or len(back.value.elts) == got]
        named = f" ({', '.join(f'`{name}`' for name in own.arguments)})" if len(own.arguments) == wanted else ""
        number = f"{wanted} argument{'s' if wanted > 1 else ''}"
        said = f"{own.name}'s forward takes {number} besides ctx{named}, and backward must return one value for each of them. Here it returns {got}:"
        return Place(said, tuple(lines)) if len(lines) == 1 else None
    given = re.search(r"(\w+)\.backward\(\) (?:takes|missing)", stage.message)
    own = next((own for own in student.owns if given and own.name == given[1]), None)
    return Place("backward is handed one gradient for each result of forward, and takes another number:", (own.backward.lineno,)) if own else None


# --- what backward writes to ------------------------------------------------------------------------------------------


def _modified(stage: Stage, student: Student) -> Place | None:
    """The line that gives a tensor which is not backward's own another name, or that hands it to a kernel which writes, or that writes."""
    own = student.own
    if own is None:
        return None
    wanted = {what for what in (INCOMING, RESULT) if what in stage.message}
    for name in re.findall(r"`([\w.]+)`", stage.message.partition(":")[0]):
        if (place := student.place_of(name)) and place[0] < len(own.arguments):
            wanted.add(own.arguments[place[0]])
    in_python = _written_in_python(student, own, wanted)
    if in_python:
        return Place("This writes into a tensor that is not backward's own:", tuple(in_python))
    for function, origins in student.handed(own):
        for name, origin in origins.items():
            if origin.name in wanted and (place := _written(student.text, function, name, origin)):
                return place
    return None


def _written_in_python(student: Student, own: Own, wanted: set[str]) -> list[int]:
    """Lines of backward with `gy *= …`, `gy.mul_(…)`, `gy[…] = …` on a tensor that is not its own."""
    found = []
    for node in ast.walk(own.backward):
        targets = [target.value for target in node.targets if isinstance(target, ast.Subscript)] if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign):
            targets = [node.target.value if isinstance(node.target, ast.Subscript) else node.target]
        if isinstance(node, ast.Call) and re.fullmatch(r"[a-z]\w*[a-z]_", last_of(node.func)) and isinstance(node.func, ast.Attribute):
            targets = [node.func.value]
        for target in targets:
            origin = student.origin(own, target) or (Origin(INCOMING) if last_of(target) in own.incoming and isinstance(node, ast.AugAssign) else None)
            found += [node.lineno] if origin and origin.name in wanted else []
    return sorted(set(found))


def _written(text: Text, function: Function, name: str, origin: Origin) -> Place | None:
    """How a C++ function writes to one of its parameters."""
    if any(re.search(r"clone\s*\(|::(?:empty|zeros)", value) for value, _ in text.made(name, function)):
        return None
    names = {name: 0}  # and other names of the same tensor: where each is given
    plain = rf"(?:auto|Tensor)&?\s+(\w+)\s*=\s*(\w+)\s*(?:\.\s*(?:{'|'.join(sorted(SAME))})\s*\((?:[^;()]|\([^;()]*\))*\)\s*)*;"
    for match in text.find(plain, function):
        if match[2] in names:
            names[match[1]] = text.line(match.start())
    for launch in text.launches(function):
        kernel = text.functions.get(launch.kernel)
        for (argument, at), (kind, parameter) in zip(launch.arguments, kernel.parameters if kernel else ()):
            used = re.match(rf"(\w+)\s*{POINTER}", argument)
            if not used or used[1] not in names or "const" in kind or not (stores := text.stores(kernel, parameter)):
                continue
            if names[used[1]]:
                return Place(f"`{used[1]}` is no new tensor but another name for `{name}`, and `{kernel.name}` writes to it:", (names[used[1]],))
            if origin.alias:
                return Place("This is no new tensor but another name for one that is not backward's own, and a kernel writes to it:", (origin.alias,))
            if parameter == name:
                return Place(f"`{kernel.name}` writes through `{parameter}`, which is not backward's own:", tuple(stores))
            return Place(f"`{name}` is not backward's own, and `{kernel.name}` writes to it as its `{parameter}`:", (text.line(at),))
    in_place = [match for one in names for match in text.find(rf"(?<![\w.]){one}\s*(?:\.\s*[a-z]\w*[a-z]_\s*\(|[-+*/]=)", function)]
    if in_place:
        return Place(f"This writes into `{name}`, which is not backward's own:", tuple(sorted({text.line(match.start()) for match in in_place})))
    return None


# --- a gradient that does not lie in one piece ------------------------------------------------------------------------


def _strided(stage: Stage, student: Student) -> Place | None:
    """Where the pointer is taken of a gradient that came in and was not made contiguous."""
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
    said = f"{named} is read here as if its elements lay in one piece, and no line before makes them do so:"
    return Place(said, tuple(sorted(lines))) if lines else None


def _bare_pointers(text: Text, function: Function, name: str, depth: int = 0) -> set[int]:
    """Lines that take the pointer of a parameter before it is made contiguous, or hand it to what does; none where its strides are looked at."""
    if text.find(rf"(?<![\w.]){name}\s*\.\s*(?:strides?|is_contiguous|packed_accessor\w*|accessor)\b", function):
        return set()
    made = text.find(rf"(?<![\w.]){name}\s*=(?!=)[^;]*\b(?:contiguous|clone)\s*\(", function)
    until = made[0].start() if made else function.end
    found = {text.line(match.start()) for match in text.find(rf"(?<![\w.]){name}\s*{POINTER}", function) if match.start() < until}
    for match in text.find(rf"(?:auto|Tensor)&?\s+(\w+)\s*=\s*{name}\s*;", function):
        if match.start() < until and depth < DEPTH:
            found |= _bare_pointers(text, function, match[1], depth + 1)
    for match in text.find(r"(?<![\w.>])(\w+)\s*(?:<[\w:, ]*>)?\s*\(([^;{}]*)\)", function):
        helper = text.functions.get(match[1])
        if helper is None or helper.kernel or match.start() > until or depth == DEPTH:
            continue
        for parameter, (argument, at) in zip(helper.names, split(match[2])):
            if argument.strip() == name and _bare_pointers(text, helper, parameter, depth + 1):
                found.add(text.line(match.start(2) + at + len(argument) - len(argument.lstrip())))
    return found


# --- what is kept between the two -------------------------------------------------------------------------------------


def _kept(stage: Stage, student: Student) -> Place | None:
    """Where forward keeps a tensor in what exists once: a class, the model, a global variable, a static one in C++."""
    own = student.own
    if own is None or student.model is None:
        return None
    behind = next(iter(parameters(own.backward)), "")
    loads = [node for node in ast.walk(own.backward) if isinstance(getattr(node, "ctx", None), ast.Load)]
    read = {node.attr for node in loads if isinstance(node, ast.Attribute) and not _of(node, behind)}
    loaded = {node.id for node in loads if isinstance(node, ast.Name)}
    found = set()
    for method in [own.forward, *([own.setup] if own.setup else []), *_methods(student.model, {"forward"})]:
        ctx = next(iter(parameters(method)), "") if method is (own.setup or own.forward) else ""
        shared = {name for node in ast.walk(method) if isinstance(node, ast.Global) for name in node.names}
        for node in ast.walk(method):
            for target in node.targets if isinstance(node, ast.Assign) else []:
                for one in parts_of(target):
                    held = one.value if isinstance(one, ast.Subscript) else one
                    once = isinstance(held, ast.Attribute) and held.attr in read and not _of(held, ctx)
                    outside = isinstance(held, ast.Name) and (held.id in shared or (held is not one and not _local(method, held.id)))
                    once |= outside and held.id in loaded
                    found |= {node.lineno} if once else set()
    if found:
        said = "What backward reads is kept here in something that exists once, for all calls together: the next forward overwrites it."
        return Place(said, tuple(sorted(found)))
    return _kept_in_cpp(student, own)


def _kept_in_cpp(student: Student, own: Own) -> Place | None:
    text = student.text
    static = re.compile(r"\bstatic\s+(?:std::\w+<[^;=]*>|(?:torch|at)::Tensor)\s+(\w+)[^;]*;")
    ahead = [function for node in ast.walk(own.forward) if (function := student.called(node))]
    behind = " ".join(text.body(function) for node in ast.walk(own.backward) if (function := student.called(node)))
    for function in ahead:
        returned = {part for parts, _ in text.returns(function) for part in parts}
        lines = [text.line(match.start()) for match in static.finditer(text.code, function.start, function.end) if match[1] in returned]
        if lines:
            said = "This tensor exists once, and forward hands it out in each call: the next forward overwrites what backward reads."
            return Place(said, tuple(lines))
    inside = [(function.start, function.end) for function in text.functions.values()]
    for match in re.finditer(r"(?:torch|at)::Tensor\s+(\w+)\s*(?:;|=)", text.code):
        if any(start <= match.start() < end for start, end in inside) or not re.search(rf"\b{match[1]}\b", behind):
            continue
        lines = sorted({text.line(at) for function in ahead for _, at in text.made(match[1], function)})
        if lines:
            return Place(f"`{match[1]}` exists once, for all calls together: the next forward overwrites what backward reads.", tuple(lines))
    return None


def _of(node: ast.Attribute, name: str) -> bool:
    """Whether it is name.something itself."""
    return isinstance(node.value, ast.Name) and node.value.id == name


def _methods(cls: ast.ClassDef, names: set[str]) -> list[ast.FunctionDef]:
    return [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name in names]


def _local(function: ast.FunctionDef, name: str) -> bool:
    return name in parameters(function) or bool(assigned(function, name))


LOOKS = {
    Reason.missing_gradient: _missing,
    Reason.gradient_shape: _shape,
    Reason.wrong_gradient: _wrong,
    Reason.backward_exception: _raised,
    Reason.backward_modified: _modified,
    Reason.noncontiguous_gradient: _strided,
    Reason.saved_overwritten: _kept,
}
