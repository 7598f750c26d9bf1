"""The module-level literals of a problem file: find them, replace them, and who reads them."""

from __future__ import annotations

import ast
import symtable
from pathlib import Path

from grader.problems.cases import ProblemError
from grader.source import syntax

ARITHMETIC = (ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.expr_context)
OF_THE_JUDGE = {"ALLOWED_OPERATORS", "CASES"}  # what a problem file may say to the judge, and no code of it reads


def parse_overrides(overrides: dict[str, str]) -> dict[str, object]:
    """Return the values that --set gives as text. Raises ProblemError for what is no literal."""
    values = {}
    for name, text in overrides.items():
        try:
            values[name] = ast.literal_eval(str(text).strip())
        except (ValueError, SyntaxError):
            raise ProblemError(
                f"--set {name}={text}: the value must be a Python literal such as 16, 0.5 or (8, 1, 1)."
            ) from None
    return values


def split_assignments(tree: ast.Module) -> ast.Module:
    """Return the tree with module-level `a = b = 256` and `a, b = 3, 4` as one assignment per name."""
    body: list[ast.stmt] = []
    for statement in tree.body:
        body.extend(_split_one(statement))
    return ast.Module(body, tree.type_ignores)


def _split_one(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None and isinstance(statement.target, ast.Name):
        return [ast.copy_location(ast.Assign([statement.target], statement.value), statement)]
    if not isinstance(statement, ast.Assign):
        return [statement]
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for target in statement.targets:
        value = statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs.extend(zip(target.elts, value.elts))
        else:
            pairs.append((target, value))
    if not all(isinstance(target, ast.Name) and is_literal(value) for target, value in pairs):
        return [statement]
    return [ast.copy_location(ast.Assign([target], value), statement) for target, value in pairs]


def is_literal(value: ast.expr) -> bool:
    """Return whether a value is a Python literal, or one with arithmetic on numbers in it: 16, (8, 1), 1024 * 2."""
    return all(isinstance(node, (*ARITHMETIC, ast.Tuple, ast.List, ast.Dict, ast.Set)) for node in ast.walk(value))


def evaluate(literal: ast.expr) -> object:
    """Return the value of a literal."""
    return eval(compile(ast.Expression(literal), "literal", "eval"), {"__builtins__": {}})


def replace_literals(tree: ast.Module, overrides: dict[str, object], path: Path) -> ast.Module:
    """Return the tree with the literals replaced that the names in overrides are assigned at module level.

    Raises ProblemError for a name without one, except for the judge's own.
    """
    if not overrides:
        return tree
    seen, settable, body = set(), [], []
    for statement in split_assignments(tree).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if is_literal(statement.value):
                settable.append(name)
                if name in overrides:
                    seen.add(name)
                    value = syntax.parse(repr(overrides[name]), mode="eval").body
                    statement = ast.copy_location(ast.Assign(statement.targets, value), statement)
        body.append(statement)
    for name in overrides:
        if name not in seen | OF_THE_JUDGE:
            can = ", ".join(n for n in dict.fromkeys(settable) if n != "CASES") or "none"
            raise ProblemError(f"--set {name}: the file assigns no literal to '{name}' (it does to: {can}).", path)
    return ast.fix_missing_locations(ast.Module(body, tree.type_ignores))


def find_names_read(tree: ast.Module, name: str) -> set[str]:
    """Return the module-level names that a class or function reads when it is used.

    Also those read by what it uses of the file, and those that these were computed from.
    """
    top = symtable.symtable(ast.unparse(tree), "problem", "exec")
    reads: dict[str, set[str]] = {}
    for scope in top.get_children():
        reads.setdefault(scope.get_name(), set()).update(_globals(scope))
    for statement in split_assignments(tree).body:
        if isinstance(statement, ast.Assign):
            value = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            for target in (node for one in statement.targets for node in ast.walk(one) if isinstance(node, ast.Name)):
                reads.setdefault(target.id, set()).update(value)
    found, new = set(), [name]
    while new:
        more = reads.get(new.pop(), set()) - found
        found |= more
        new.extend(more)
    return found


def _globals(scope: symtable.SymbolTable) -> set[str]:
    """Return the global names that a function or class reads, or anything inside it."""
    own = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return own.union(*map(_globals, scope.get_children()))
