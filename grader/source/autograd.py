"""Reads the Python of a submission with a torch.autograd.Function: what forward saves, what backward passes to C++, and
what the Function is applied to.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from grader.source.cpp import Function, Text

# may share memory with what they are called on
SAME = {"contiguous", "view", "reshape", "detach", "flatten", "squeeze", "unsqueeze", "view_as", "t"}
COPIES = {"contiguous", "clone"}  # lie in one piece


@dataclasses.dataclass(frozen=True)
class Own:
    """A torch.autograd.Function of the student. arguments: of its forward. incoming: the gradients that its backward
    receives.
    """

    name: str
    forward: ast.FunctionDef
    backward: ast.FunctionDef
    setup: ast.FunctionDef | None

    @property
    def arguments(self) -> list[str]:
        return parameters(self.forward)[0 if self.setup else 1 :]

    @property
    def incoming(self) -> list[str]:
        return parameters(self.backward)[1:]

    @property
    def saved(self) -> list[ast.expr]:
        """The arguments of forward's ctx.save_for_backward."""
        calls = [
            node
            for node in ast.walk(self.setup or self.forward)
            if isinstance(node, ast.Call) and last_of(node.func) == "save_for_backward"
        ]
        return list(calls[0].args) if len(calls) == 1 else []


@dataclasses.dataclass(frozen=True)
class Origin:
    """The origin of a tensor in backward. name: of an argument of forward, INCOMING or RESULT. alias: the line that
    gives it another name. whole: it is contiguous.
    """

    name: str
    alias: int = 0
    whole: bool = False


INCOMING = "the gradient that came in"
RESULT = "forward's result"


class Student:
    """The file: its Functions, ModelNew, the C++ text."""

    def __init__(self, tree: ast.Module, text: Text):
        self.tree, self.text = tree, text
        self.owns = [own for node in tree.body if isinstance(node, ast.ClassDef) and (own := _own(node))]
        self.model = next(
            (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew"), None
        )
        self.modules = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if last_of(node.value.func) in ("load_inline", "load")
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    @property
    def own(self) -> Own | None:
        """The Function, where there is one."""
        return self.owns[0] if len(self.owns) == 1 else None

    def called(self, node: ast.AST) -> Function | None:
        """Return the C++ function that a Python call calls, or None."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        module = node.func.value
        known = isinstance(module, ast.Name) and module.id in self.modules
        return self.text.function(node.func.attr) if known else None

    def applied(self) -> list[ast.Call]:
        """Return the calls of a Function's apply, also by another name, outside of `if __name__ …`."""
        names = {own.name for own in self.owns}
        aliases = [
            node for node in self.tree.body if isinstance(node, ast.Assign) and is_of(node.value, names, "apply")
        ]
        others = {target.id for node in aliases for target in node.targets if isinstance(target, ast.Name)}
        return [
            node
            for node in self._calls()
            if is_of(node.func, names, "apply") or (isinstance(node.func, ast.Name) and node.func.id in others)
        ]

    def direct(self) -> list[ast.Call]:
        """Return the calls of a C++ function, or of a Function's own forward, outside of Functions."""
        names = {own.name for own in self.owns}
        return [node for node in self._calls() if self.called(node) or is_of(node.func, names, "forward")]

    def _calls(self) -> list[ast.Call]:
        """Return the calls in ModelNew and in the module's functions."""
        parts = [node for node in self.tree.body if isinstance(node, ast.FunctionDef) or node is self.model]
        return [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)]

    def place_of(self, name: str) -> tuple[int, ast.expr] | None:
        """Return the position at which `apply` receives an input or a weight, and the argument there."""
        calls = self.applied()
        if len(calls) != 1 or self.model is None:
            return None
        found = [(k, argument) for k, argument in enumerate(calls[0].args) if is_called(self._plain(argument), name)]
        return found[0] if len(found) == 1 else None

    def _plain(self, node: ast.expr) -> ast.expr:
        """Return an expression without .detach() and the like; for a variable that is set once, its value."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in SAME | COPIES | {"to", "cuda", "float"}
        ):
            return self._plain(node.func.value)
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return self._plain(node.value)
        if not isinstance(node, ast.Name) or self.model is None:
            return node
        values = [value for _, value, _ in assigned(self.model, node.id)]
        return self._plain(values[0]) if len(values) == 1 and not mentions(values[0], node.id) else node

    # -- what backward receives and passes on --

    def origin(self, own: Own, node: ast.expr) -> Origin | None:
        """Return the origin of a tensor in backward, or None if it is unknown."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME | COPIES:
            inner = self.origin(own, node.func.value)
            return (
                dataclasses.replace(inner, whole=inner.whole or node.func.attr in COPIES)
                if inner and node.func.attr != "clone"
                else None
            )
        if not isinstance(node, ast.Name):
            return None
        made = assigned(own.backward, node.id)
        if node.id in own.incoming:
            calls = [value for _, value, _ in made if isinstance(value, ast.Call)]
            same = len(calls) == len(made) and all(
                last_of(value.func) in SAME | COPIES and begins_with(value) == node.id for value in calls
            )
            copied = any(
                isinstance(one, ast.Attribute) and one.attr == "clone"
                for _, value, _ in made
                for one in ast.walk(value)
            )
            return (
                Origin(INCOMING, whole=any(last_of(value.func) in COPIES for value in calls))
                if same and not copied
                else None
            )
        if len(made) != 1:
            return None
        place, value, line = made[0]
        if place is not None and last_of(value) == "saved_tensors":
            return self._saved(own, place)
        inner = self.origin(own, value) if place is None else None
        return dataclasses.replace(inner, alias=line) if inner else None

    def _saved(self, own: Own, place: int) -> Origin | None:
        if not -len(own.saved) <= place < len(own.saved):
            return None
        node = own.saved[place]
        if not isinstance(node, ast.Name) or any(
            isinstance(one, ast.Starred) for one in (own.saved[:place] if place >= 0 else own.saved[place:])
        ):
            return None
        results = [
            value
            for one in ast.walk(own.forward)
            if isinstance(one, ast.Return) and one.value
            for value in parts_of(one.value)
        ]
        return Origin(
            RESULT if any(is_called(value, node.id) for value in results) and node.id not in own.arguments else node.id
        )

    def handed(self, own: Own) -> Iterator[tuple[Function, dict[str, Origin]]]:
        """Yield the C++ functions that backward calls, with the known origins of their parameters."""
        for node in ast.walk(own.backward):
            function = self.called(node)
            if function is None or not isinstance(node, ast.Call):
                continue
            origins: list[Origin | None] = []
            for argument in node.args:
                if isinstance(argument, ast.Starred) and last_of(argument.value) == "saved_tensors":
                    origins += [self._saved(own, place) for place in range(len(own.saved))]
                elif isinstance(argument, ast.Starred):
                    break
                else:
                    origins.append(self.origin(own, argument))
            yield function, {name: origin for name, origin in zip(function.names, origins) if origin}


def _own(node: ast.ClassDef) -> Own | None:
    methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    if not any(last_of(base) == "Function" for base in node.bases) or not {"forward", "backward"} <= set(methods):
        return None
    return Own(node.name, methods["forward"], methods["backward"], methods.get("setup_context"))


def parameters(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in [*function.args.posonlyargs, *function.args.args]]


def last_of(node: ast.AST) -> str:
    """Return the last name of a.b.c."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def first_of(node: ast.AST) -> str:
    """Return the first name of a.b.c."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_of(node: ast.AST, names: set[str], last: str) -> bool:
    """Return whether the expression is Name.last for one of the names."""
    return last_of(node) == last and first_of(node) in names


def begins_with(node: ast.AST) -> str:
    """Return the variable at the start of a chain of calls such as x.view(…).contiguous()."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_called(node: ast.AST, name: str) -> bool:
    """Return whether an expression is the input `x`, or the weight `gn.weight` as self.gn.weight."""
    return ast.unparse(node) in (name, f"self.{name}")


def mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def assigned(inside: ast.AST, name: str) -> list[tuple[int | None, ast.expr, int]]:
    """Return what a variable is set to: its position in an unpacking (behind a * counted from the end), the right side,
    and the line. Assignments of None are left out.
    """
    found: list[tuple[int | None, ast.expr, int]] = []
    for node in ast.walk(inside):
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id == name:
                found.append((None, node.value, node.lineno))
            elif isinstance(target, (ast.Tuple, ast.List)):
                found += [(*one, node.lineno) for one in _unpacked(target.elts, node.value, name)]
    return [one for one in found if not is_none(one[1])]


def _unpacked(targets: list[ast.expr], value: ast.expr, name: str) -> list[tuple[int | None, ast.expr]]:
    """Return what a variable among the targets of an unpacking is set to, as `assigned` does."""
    paired = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets) else None
    found: list[tuple[int | None, ast.expr]] = []
    for k, target in enumerate(targets):
        if isinstance(target, ast.Name) and target.id == name:
            behind_star = any(isinstance(before, ast.Starred) for before in targets[:k])
            place = k - len(targets) if behind_star else k  # behind a * counted from the end
            found.append((None, paired[place]) if paired else (place, value))
    return found


def is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def only_none(inside: ast.AST, name: str) -> list[int]:
    """Return the lines that set a variable to None, if nothing sets it to anything else."""
    if assigned(inside, name) or (isinstance(inside, ast.FunctionDef) and name in parameters(inside)):
        return []
    nones = [node for node in ast.walk(inside) if isinstance(node, ast.Assign) and is_none(node.value)]
    return sorted({node.lineno for node in nones if any(mentions(target, name) for target in node.targets)})


def parts_of(node: ast.expr) -> list[ast.expr]:
    """Return the values of a return statement one by one."""
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def returns(function: ast.FunctionDef) -> list[tuple[ast.expr, int]]:
    """Return what the function returns: each value, with the line of its return statement."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return [(node.value, node.lineno) for node in statements if node.value is not None]
