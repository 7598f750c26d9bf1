"""List the small edits of a torch module's source: one expression at a time is replaced by another."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Callable, Iterator

from grader.lint import torch_names

NOT_EDITED = (ast.While, ast.Raise, ast.Assert, ast.JoinedStr)  # a mutated `while` may never end; texts are not values
SWAPPED_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
SWAPPED_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
DIMENSIONS = (0, 1, 2, 3, -1)
MOST_SWAPPED = 4  # arguments of one call


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One expression of the source and what replaces it. group: the sort of edit."""

    group: str
    node: ast.expr
    replacement: ast.expr

    @property
    def before(self) -> str:
        return ast.unparse(self.node)

    @property
    def after(self) -> str:
        return ast.unparse(self.replacement)

    def apply(self, tree: ast.Module) -> ast.Module:
        """Return a copy of the tree with the expression replaced."""
        made = copy.deepcopy(self.replacement)
        for part in ast.walk(made):
            ast.copy_location(part, self.node)
        return copy.deepcopy(tree, {id(self.node): made})


def list_mutations(tree: ast.Module, names: frozenset[str]) -> list[Mutation]:
    """Return the mutations of the functions and classes of these names, in the order of the source."""
    found: list[Mutation] = []
    for statement in tree.body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)) and statement.name in names:
            for function in ast.walk(statement):
                if isinstance(function, ast.FunctionDef):
                    found += _mutate_function(function)
    unique = {(m.node.lineno, m.node.col_offset, m.before, m.after): m for m in found if m.before != m.after}
    return [unique[key] for key in sorted(unique)]


def _mutate_function(function: ast.FunctionDef) -> Iterator[Mutation]:
    constructs = function.name == "__init__"
    for statement in function.body:
        for node, keyword in _walk(statement, None):
            yield from _mutate(node, keyword, constructs)


def _walk(node: ast.AST, keyword: str | None) -> Iterator[tuple[ast.expr, str | None]]:
    """Return the expressions below a node that may be edited, each with the keyword whose value it is part of."""
    if isinstance(node, NOT_EDITED) or _is_super(node):
        return
    if isinstance(node, ast.keyword):
        keyword = node.arg
    if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        yield node, keyword
    if isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    elif isinstance(node, ast.FunctionDef):
        children = []  # a function inside a function is walked by itself
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _walk(child, keyword)


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("super(")


def _mutate(node: ast.expr, keyword: str | None, constructs: bool) -> Iterator[Mutation]:
    def make(group: str, replacements: list[ast.expr]) -> Iterator[Mutation]:
        return (Mutation(group, node, replacement) for replacement in replacements)

    if isinstance(node, ast.Constant):
        yield from make("dimension" if keyword in ("dim", "axis") else "constant", _replace_constant(node, keyword))
    elif isinstance(node, ast.BinOp):
        yield from make("operator", _replace_operator(node))
        yield from make("dropped term", _drop_operand(node))
        yield from make("order", _regroup(node))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        others = SWAPPED_COMPARISONS.get(type(node.ops[0]), ())
        yield from make("comparison", [ast.Compare(node.left, [other()], node.comparators) for other in others])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield from make("operator", [node.operand])
    elif isinstance(node, ast.IfExp):
        yield from make("condition", [node.body, node.orelse])
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield from make("dropped call", [node.value])
    elif isinstance(node, ast.Call):
        yield from make("keyword", _drop_keyword(node))
        yield from make("argument", _swap_arguments(node))
        yield from make("constant", _add_one(node, constructs))
        for group, replace in CALLS:
            yield from make(group, replace(node))
        if not constructs:
            yield from make("dropped call", [subject] if (subject := _get_subject(node)) else [])
            yield from make("order", _exchange_calls(node))


def _replace_constant(node: ast.Constant, keyword: str | None) -> list[ast.expr]:
    value, others = node.value, []
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, int):
        others = [*DIMENSIONS] if keyword in ("dim", "axis") else [value + 1, value * 2, 0]
    elif isinstance(value, float):
        others = [value * 2, value + 1, 0.0]
    return [_make_number(other) for other in dict.fromkeys(others) if other != value]


def _make_number(value: bool | int | float) -> ast.expr:
    """Return the literal; a negative number is a minus and a constant, as the parser makes it."""
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def _replace_operator(node: ast.BinOp) -> list[ast.expr]:
    if isinstance(node.op, ast.MatMult):
        return [ast.BinOp(node.right, node.op, node.left)]
    other = SWAPPED_OPERATORS.get(type(node.op))
    return [ast.BinOp(node.left, other(), node.right)] if other else []


def _drop_operand(node: ast.BinOp) -> list[ast.expr]:
    if isinstance(node.op, (ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)):
        return [node.left]
    return [node.left, node.right]


def _regroup(node: ast.BinOp) -> list[ast.expr]:
    """Return `(a + b) * c` as `a * c + b` and as `a + b * c`."""
    inner = node.left
    if not isinstance(inner, ast.BinOp) or type(inner.op) is type(node.op):
        return []
    exchanged = ast.BinOp(ast.BinOp(inner.left, node.op, node.right), inner.op, inner.right)
    return [exchanged, ast.BinOp(inner.left, inner.op, ast.BinOp(inner.right, node.op, node.right))]


def _get_subject(node: ast.expr) -> ast.expr | None:
    """Return the first thing that a call is applied to: `x` of `torch.tanh(x)`, `self.act(x)` and `x.tanh()`."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and torch_names.is_method(node.func):
        return node.func.value
    return node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None


def _replace_subject(node: ast.Call, subject: ast.expr) -> ast.expr:
    if isinstance(node.func, ast.Attribute) and torch_names.is_method(node.func):
        return ast.Call(ast.Attribute(subject, node.func.attr, ast.Load()), node.args, node.keywords)
    return ast.Call(node.func, [subject, *node.args[1:]], node.keywords)


def _exchange_calls(node: ast.Call) -> list[ast.expr]:
    """Return `f(g(x))` as `g(f(x))`."""
    inner = _get_subject(node)
    subject = _get_subject(inner) if inner else None
    if not isinstance(inner, ast.Call) or subject is None:
        return []
    return [_replace_subject(inner, _replace_subject(node, subject))]


def _add_one(node: ast.Call, constructs: bool) -> list[ast.expr]:
    """Return the call with 1 added to a variable that it gets: a size, a stride, a bound, an axis.

    In forward, the first argument is the tensor, not a number.
    """
    made: list[ast.expr] = []
    for i in range(0 if constructs else 1, len(node.args)):
        args = list(node.args)
        args[i] = ast.BinOp(args[i], ast.Add(), ast.Constant(1))
        made += [ast.Call(node.func, args, node.keywords)] if _is_variable(node.args[i]) else []
    for i, one in enumerate(node.keywords):
        keywords = list(node.keywords)
        keywords[i] = ast.keyword(one.arg, ast.BinOp(one.value, ast.Add(), ast.Constant(1)))
        made += [ast.Call(node.func, node.args, keywords)] if one.arg and _is_variable(one.value) else []
    return made


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self")


def _drop_keyword(node: ast.Call) -> list[ast.expr]:
    return [
        ast.Call(node.func, node.args, [other for other in node.keywords if other is not one])
        for one in node.keywords
        if one.arg
    ]


def _swap_arguments(node: ast.Call) -> list[ast.expr]:
    made: list[ast.expr] = []
    for i in range(min(len(node.args), MOST_SWAPPED) - 1):
        args = list(node.args)
        args[i], args[i + 1] = args[i + 1], args[i]
        made.append(ast.Call(node.func, args, node.keywords))
    return made


# --- calls of torch's functions and modules --------------------------------------------------------------------------


def _replace_reduction(node: ast.Call) -> list[ast.expr]:
    others = torch_names.REDUCTIONS.get(torch_names.find_name(node.func), ())
    return [ast.Call(torch_names.rename(node.func, other), node.args, node.keywords) for other in others]


def _replace_variance(node: ast.Call) -> list[ast.expr]:
    """Return the call with the sum of squares divided by n: without a keyword, var and std divide by n - 1."""
    given = {keyword.arg for keyword in node.keywords}
    if torch_names.find_name(node.func) not in ("var", "std", "var_mean", "std_mean"):
        return []
    return [] if given & {"unbiased", "correction"} else [_add_keyword(node, "correction", 0)]


def _replace_activation(node: ast.Call) -> list[ast.expr]:
    name = torch_names.find_name(node.func)
    modules = [
        ast.Call(torch_names.rename(node.func, other), node.args, node.keywords)
        for other in torch_names.MODULES.get(name, ())
    ]
    functions = [
        ast.Call(torch_names.rename(node.func, other), node.args, node.keywords)
        for other in torch_names.SAME_ARGUMENTS.get(name, ())
    ]
    of_x: list[ast.expr] = [] if torch_names.is_method(node.func) else node.args[:1]
    functional = [
        ast.Call(torch_names.make_functional(other), of_x, [])
        for other in torch_names.ACTIVATIONS.get(name, ())
        if of_x
    ]
    return [*modules, *functions, *functional]


def _add_arguments(node: ast.Call) -> list[ast.expr]:
    """Return the call with a keyword that it leaves at its default."""
    name, given = torch_names.find_name(node.func), {keyword.arg for keyword in node.keywords}
    added = torch_names.added_keywords(name)
    return [_add_keyword(node, keyword, value) for keyword, value in added if keyword not in given]


def _add_keyword(node: ast.Call, keyword: str, value: object) -> ast.Call:
    constant = ast.Constant(value)  # pyright: ignore[reportArgumentType]
    return ast.Call(node.func, node.args, [*node.keywords, ast.keyword(keyword, constant)])


def _drop_bound(node: ast.Call) -> list[ast.expr]:
    """Return a clamp with one of its two bounds: those given by keyword are dropped as any keyword is."""
    if torch_names.find_name(node.func) not in ("clamp", "clip", "hardtanh"):
        return []
    first = 0 if torch_names.is_method(node.func) else 1
    if len(node.args) != first + 2:
        return []
    kept, none = node.args[:first], ast.Constant(None)
    return [
        ast.Call(node.func, [*kept, node.args[first]], node.keywords),
        ast.Call(node.func, [*kept, none, node.args[first + 1]], node.keywords),
    ]


CALLS: tuple[tuple[str, Callable[[ast.Call], list[ast.expr]]], ...] = (
    ("reduction", _replace_reduction),
    ("reduction", _replace_variance),
    ("activation", _replace_activation),
    ("module argument", _add_arguments),
    ("clamp", _drop_bound),
)
