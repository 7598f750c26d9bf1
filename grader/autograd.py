"""Reads the Python of a submission that has a torch.autograd.Function: what forward saves, what backward hands to C++, what is applied to what."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from grader.cpp import Function, Text

SAME = {"contiguous", "view", "reshape", "detach", "flatten", "squeeze", "unsqueeze", "view_as", "t"}  # may share memory with what they are called on
COPIES = {"contiguous", "clone"}  # lie in one piece


@dataclasses.dataclass(frozen=True)
class Own:
    """A torch.autograd.Function of the student's. arguments: of its forward. incoming: the gradients that its backward is given."""

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
        """What forward hands to ctx.save_for_backward."""
        calls = [node for node in ast.walk(self.setup or self.forward) if isinstance(node, ast.Call) and last_of(node.func) == "save_for_backward"]
        return list(calls[0].args) if len(calls) == 1 else []


@dataclasses.dataclass(frozen=True)
class Origin:
    """What a tensor of backward is. name: of Function.forward's, INCOMING or RESULT. alias: the line that gives it another name.
    whole: it lies in one piece."""

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
        self.model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew"), None)
        self.modules = {
            target.id for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            and last_of(node.value.func) in ("load_inline", "load") for target in node.targets if isinstance(target, ast.Name)
        }  # fmt: skip

    @property
    def own(self) -> Own | None:
        """The Function, where there is one."""
        return self.owns[0] if len(self.owns) == 1 else None

    def called(self, node: ast.AST) -> Function | None:
        """The C++ function that a Python call is of."""
        inside = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        return self.text.function(node.func.attr) if inside and node.func.value.id in self.modules else None

    def applied(self) -> list[ast.Call]:
        """Calls of a Function's apply, also by another name of it, outside of `if __name__ …`."""
        names = {own.name for own in self.owns}
        aliases = [node for node in self.tree.body if isinstance(node, ast.Assign) and is_of(node.value, names, "apply")]
        others = {target.id for node in aliases for target in node.targets if isinstance(target, ast.Name)}
        return [node for node in self._calls() if is_of(node.func, names, "apply") or (isinstance(node.func, ast.Name) and node.func.id in others)]

    def direct(self) -> list[ast.Call]:
        """Calls of a kernel's C++ function, or of a Function's own forward, outside of Functions."""
        names = {own.name for own in self.owns}
        return [node for node in self._calls() if self.called(node) or is_of(node.func, names, "forward")]

    def _calls(self) -> list[ast.Call]:
        """Calls in ModelNew, and in functions beside it."""
        parts = [node for node in self.tree.body if isinstance(node, ast.FunctionDef) or node is self.model]
        return [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)]

    def place_of(self, name: str) -> tuple[int, ast.expr] | None:
        """At which place `apply` is handed an input or a weight, and what stands there."""
        calls = self.applied()
        if len(calls) != 1 or self.model is None:
            return None
        found = [(k, argument) for k, argument in enumerate(calls[0].args) if is_called(self._plain(argument), name)]
        return found[0] if len(found) == 1 else None

    def _plain(self, node: ast.expr) -> ast.expr:
        """An expression without .detach() and the like; for a variable that is set once what it is set to."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME | COPIES | {"to", "cuda", "float"}:
            return self._plain(node.func.value)
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return self._plain(node.value)
        made = [value for _, value, _ in assigned(self.model, node.id)] if isinstance(node, ast.Name) else []
        return self._plain(made[0]) if len(made) == 1 and not mentions(made[0], node.id) else node

    # -- what backward is handed, and hands on --

    def origin(self, own: Own, node: ast.expr) -> Origin | None:
        """What a tensor in backward is; None where that is not known."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME | COPIES:
            inner = self.origin(own, node.func.value)
            return dataclasses.replace(inner, whole=inner.whole or node.func.attr in COPIES) if inner and node.func.attr != "clone" else None
        if not isinstance(node, ast.Name):
            return None
        made = assigned(own.backward, node.id)
        if node.id in own.incoming:
            same = all(isinstance(value, ast.Call) and last_of(value.func) in SAME | COPIES and begins_with(value) == node.id for _, value, _ in made)
            copied = any(isinstance(one, ast.Attribute) and one.attr == "clone" for _, value, _ in made for one in ast.walk(value))
            return Origin(INCOMING, whole=any(last_of(value.func) in COPIES for _, value, _ in made)) if same and not copied else None
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
        if not isinstance(node, ast.Name) or any(isinstance(one, ast.Starred) for one in (own.saved[:place] if place >= 0 else own.saved[place:])):
            return None
        results = [value for one in ast.walk(own.forward) if isinstance(one, ast.Return) and one.value for value in parts_of(one.value)]
        return Origin(RESULT if any(is_called(value, node.id) for value in results) and node.id not in own.arguments else node.id)

    def handed(self, own: Own) -> Iterator[tuple[Function, dict[str, Origin]]]:
        """The C++ functions that backward calls, and what each of their parameters is, as far as known."""
        for node in ast.walk(own.backward):
            if (function := self.called(node)) is None:
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
    """The name at the end of a.b.c."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def first_of(node: ast.AST) -> str:
    """The name in front of a.b.c."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_of(node: ast.AST, names: set[str], last: str) -> bool:
    """Whether it is Name.last."""
    return last_of(node) == last and first_of(node) in names


def begins_with(node: ast.AST) -> str:
    """The variable that a chain of calls, x.view(…).contiguous(), begins with."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_called(node: ast.AST, name: str) -> bool:
    """Whether an expression is the input `x`, or the weight `gn.weight` as self.gn.weight."""
    return ast.unparse(node) in (name, f"self.{name}")


def mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def assigned(inside: ast.AST, name: str) -> list[tuple[int | None, ast.expr, int]]:
    """What a variable is set to: its place in what is unpacked (behind a * counted from the end), the right side, the line; None left out."""
    found = []
    for node in ast.walk(inside):
        changed = isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None
        for target in node.targets if isinstance(node, ast.Assign) else [node.target] if changed else []:
            if isinstance(target, ast.Name) and target.id == name:
                found.append((None, node.value, node.lineno))
            elif isinstance(target, (ast.Tuple, ast.List)):
                paired = isinstance(node.value, (ast.Tuple, ast.List)) and len(node.value.elts) == len(target.elts)
                for k, one in enumerate(target.elts):
                    k -= len(target.elts) if any(isinstance(before, ast.Starred) for before in target.elts[:k]) else 0  # from the end
                    if isinstance(one, ast.Name) and one.id == name:
                        found.append((None, node.value.elts[k], node.lineno) if paired else (k, node.value, node.lineno))
    return [one for one in found if not is_none(one[1])]


def is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def only_none(inside: ast.AST, name: str) -> list[int]:
    """Lines that set a variable to None, where nothing sets it to anything else."""
    if assigned(inside, name) or name in parameters(inside):
        return []
    nones = [node for node in ast.walk(inside) if isinstance(node, ast.Assign) and is_none(node.value)]
    return sorted({node.lineno for node in nones if any(mentions(target, name) for target in node.targets)})


def parts_of(node: ast.expr) -> list[ast.expr]:
    """What a return hands back, one by one."""
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def returns(function: ast.FunctionDef) -> list[ast.Return]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
