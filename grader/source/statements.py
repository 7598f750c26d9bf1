"""Read the statements of a submission, C++ in strings and the Python around them, without names and layout."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.source import syntax
from grader.source.expressions import (
    QUALIFIERS,
    TYPES,
    ExpressionError,
    Parser,
    Tree,
    Word,
    find_indices,
    find_names,
    join_operators,
    negate,
    replace_name,
    shape,
)
from simt.frontend.tokens import Token, tokenize

MOST_WORDS = 300  # of a statement that is parsed
MOST_INLINED = 500  # characters of a value's form that takes the place of its variable
MOST_STATEMENTS = 4000  # of a file
MOST_NESTING = 60
SHORTEST_CPP = 20  # characters of a string
LEAVES = {"return", "break", "continue"}
CPP = re.compile(r"[;{}]")  # what a string with C++ holds
PAIRS = {"(": ")", "[": "]", "{": "}", "<<<": ">>>"}


@dataclass(frozen=True)
class Statement:
    """A statement in its canonical form. lines: the first and the last, from 1. text: its words as they were written.

    shape: the canonical form without names; two statements that differ in names, order of operands, casts, types, or
    spelling of loops and increments have the same.
    """

    tree: Tree
    lines: tuple[int, int]
    text: str
    shape: str = field(default="")


@dataclass
class Reading:
    """What a file says. comments: (line, text) of each."""

    statements: list[Statement] = field(default_factory=list)
    comments: list[tuple[int, str]] = field(default_factory=list)


def read_statements(source: str) -> Reading:
    """Return the statements of a submission. A file that Python cannot parse is read as C++ as a whole."""
    found = Reading()
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        _read_cpp(re.sub(r"\"\"\"|'''", " ", source), 1, found)
        return found
    docstrings = _find_docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        text = node.value
        if len(text) >= SHORTEST_CPP and CPP.search(text):
            _read_cpp(text, node.lineno, found, node.end_lineno or node.lineno)
    _read_python(tree, docstrings, found)
    found.comments += [(n, text.partition("#")[2]) for n, text in enumerate(source.split("\n"), 1) if _is_note(text)]
    return found


def _is_note(text: str) -> bool:
    return text.lstrip().startswith("#") and not re.match(r"\s*#\s*(?:include|define|pragma|if|el|endif|undef)", text)


# -- C++ --


def _read_cpp(text: str, line: int, found: Reading, last: int = 1 << 30) -> None:
    """Add what a string with C++ says, which begins on a line of the file and ends on `last`."""
    tokens = [Token(one.kind, one.text, min(last, one.line + line - 1)) for one in tokenize(text)]
    found.comments += [(one.line, one.text.strip("/* \n")) for one in tokens if one.kind == "comment"]
    plain, constants = _take_directives(tokens)
    Reader(join_operators(plain), constants, found.statements).read()


def _take_directives(tokens: list[Token]) -> tuple[list[Token], dict[str, Tree]]:
    """Return the tokens without preprocessor lines, and the numbers that `#define` names."""
    kept: list[Token] = []
    constants: dict[str, Tree] = {}
    i, fresh = 0, True
    while i < len(tokens):
        token = tokens[i]
        if fresh and token.text == "#":
            end = i
            while end < len(tokens) and not (tokens[end].kind == "space" and re.search(r"(?<!\\)\n", tokens[end].text)):
                end += 1
            words = [one for one in tokens[i + 1 : end] if one.kind not in ("space", "comment")]
            if len(words) > 2 and words[0].text == "define" and words[2].text != "(":
                _keep_constant(constants, words[1].text, join_operators(words[2:]))
            i = end
            continue
        fresh = "\n" in token.text if token.kind == "space" else fresh and token.kind == "comment"
        kept.append(token)
        i += 1
    return kept, constants


def _keep_constant(constants: dict[str, Tree], name: str, words: Sequence[Word]) -> None:
    try:
        value = Parser(words, constants).read_all()
    except ExpressionError:
        return
    if value[0] == "n":
        constants[name] = value


class Reader:
    """Reads the statements of C++ into a list."""

    def __init__(self, words: list[Word], constants: dict[str, Tree], found: list[Statement]):
        self.words, self.constants, self.found, self.nesting = words, constants, found, 0
        self.known: dict[str, Tree] = constants

    def read(self) -> None:
        """Read all words."""
        at = 0
        while at < len(self.words) and len(self.found) < MOST_STATEMENTS:
            at = max(self.statement(at), at + 1)

    def text(self, at: int) -> str:
        """Return the text of a word, "" behind the last."""
        return self.words[at].text if at < len(self.words) else ""

    def close(self, at: int) -> int:
        """Return the place of the bracket that closes the one at `at`; behind the last word if there is none."""
        depth, first, last = 0, self.text(at), PAIRS[self.text(at)]
        for i in range(at, len(self.words)):
            depth += (self.words[i].text == first) - (self.words[i].text == last)
            if depth == 0:
                return i
        return len(self.words)

    def block(self, at: int, end: int) -> None:
        """Read the statements between two places."""
        while at < end and len(self.found) < MOST_STATEMENTS:
            at = max(self.statement(at), at + 1)

    def statement(self, at: int) -> int:
        """Read the statement at a place; return the place behind it."""
        self.nesting += 1
        try:
            return self._statement(at) if self.nesting <= MOST_NESTING else len(self.words)
        finally:
            self.nesting -= 1

    def _statement(self, at: int) -> int:
        text = self.text(at)
        if text in ("for", "while", "if", "switch") and self.text(at + 1) == "(":
            closed = self.close(at + 1)
            return self._for(at, closed) if text == "for" else self._condition(text, at, closed)
        if text == "if" and self.text(at + 1) == "constexpr":
            return self._condition(text, at + 1, self.close(at + 2)) if self.text(at + 2) == "(" else at + 1
        if text == "do":
            return self.statement(at + 1)  # the while behind it is the loop
        if text in ("{", "}", ";", "else"):
            return at + 1
        if text == "template" and self.text(at + 1) == "<":
            while at < len(self.words) and self.text(at) != ">":
                at += 1
            return at + 1
        if text in LEAVES:
            end = self._end(at)
            if end > at + 1:
                self.add(at + 1, end, "return")
            return end + 1
        return self._simple(at)

    def _for(self, at: int, closed: int) -> int:
        """Read a for loop as what a while loop would be: start, condition, body, step."""
        parts, depth, begun = [], 0, at + 2
        for i in range(at + 2, closed):
            depth += (self.text(i) in ("(", "[", "{")) - (self.text(i) in (")", "]", "}"))
            if self.text(i) == ";" and depth == 0:
                parts.append((begun, i))
                begun = i + 1
        parts.append((begun, closed))
        if len(parts) != 3:
            self.add(at + 2, closed, "loop")
            return self.statement(closed + 1)
        self.declare(*parts[0])
        self.add(parts[1][0], parts[1][1], "loop")
        end = self.statement(closed + 1)
        for begin, behind in self._split(*parts[2]):
            self.add(begin, behind)
        return end

    def _condition(self, kind: str, at: int, closed: int) -> int:
        """Read if, while or switch. An if that only leaves is one of the opposite condition around the rest."""
        body = closed + 1
        inside = body + 1 if self.text(body) == "{" else body
        leaves = kind == "if" and self.text(inside) in LEAVES and self.text(inside + 1) == ";"
        self.add(at + 2, closed, "loop" if kind == "while" else kind, opposite=leaves)
        return self.statement(body)

    def _end(self, at: int) -> int:
        """Return the place of the semicolon that ends a statement, or of the brace that begins or ends a body."""
        while at < len(self.words):
            text = self.text(at)
            if text in PAIRS and not (text == "{" and self.text(at - 1) in (")", "const", "else")):
                at = self.close(at)
            elif text in (";", "}", "{"):
                return at
            at += 1
        return at

    def _simple(self, at: int) -> int:
        """Read a declaration, an expression, or the head of a function."""
        end = self._end(at)
        if self.text(end) == "{":
            commas = sum(self.text(i) == "," for i in range(at, end))
            kinds = sorted({self.text(i) for i in range(at, end)} & {"__global__", "__device__"})
            self._take_parameters(at, end)
            self.keep(("function", ("n", commas + 1), *(("k", kind) for kind in kinds)), at, end)
            return end + 1
        self.declare(at, end)
        return end + 1

    def _take_parameters(self, at: int, end: int) -> None:
        """Keep the names of a function's parameters, which stand for their places in its list."""
        begin = next((i + 1 for i in range(at, end) if self.text(i) == "("), end)
        parts = self._split(begin, self.close(begin - 1) if begin < end else end)
        names = [
            next((self.text(i) for i in range(last - 1, first, -1) if self.words[i].kind == "word"), "")
            for first, last in parts
        ]
        self.known = {**self.constants, **{name: ("p", f"${place}") for place, name in enumerate(names) if name}}

    def declare(self, at: int, end: int) -> None:
        """Read a declaration, or else an expression; each variable of a declaration is a statement."""
        begin, shared, fixed = at, False, False
        while begin < end and (
            self.text(begin) in QUALIFIERS | TYPES | {"__shared__", "*", "&", "&&", "std", "torch", "::"}
        ):
            if self.text(begin) == "*" and begin == at:
                break
            shared, fixed = shared or self.text(begin) == "__shared__", fixed or self.text(begin) == "constexpr"
            begin += 1
        if begin == at and at + 1 < end and self.words[at].kind == self.words[at + 1].kind == "word":
            begin = at + 1  # a type of the program's own
        if begin == at:
            for first, last in self._split(at, end):
                self.add(first, last)
            return
        if self.text(begin) in ("(", ".", "[") or begin == end:  # int(x), torch::…: no declaration
            self.add(at, end)
            return
        for first, last in self._split(begin, end):
            self._declarator(first, last, shared, fixed)

    def _declarator(self, at: int, end: int, shared: bool, fixed: bool) -> None:
        """Read one variable of a declaration, which says something if it is set or is an array."""
        while self.text(at) in ("*", "&", "const", "__restrict__"):
            at += 1
        if at + 2 < end and self.text(at + 1) == "=" and self.words[at].kind == "word":
            if fixed:
                _keep_constant(self.constants, self.text(at), self.words[at + 2 : end])
            if self.text(at) in self.constants:
                self.known = {**self.known, self.text(at): self.constants[self.text(at)]}
            else:
                self.known = {name: tree for name, tree in self.known.items() if name != self.text(at)}
                self.add(at, end)
        elif self.text(at + 1) in ("(", "{") and at + 1 < end:
            self.add(at, end, "make")
        elif self.text(at + 1) == "[" and at + 1 < end:
            self.add(at, end, "shared" if shared else "array")

    def _split(self, at: int, end: int) -> list[tuple[int, int]]:
        """Return the places between commas outside of brackets."""
        parts, depth, begun = [], 0, at
        for i in range(at, end):
            depth += (self.text(i) in PAIRS) - (self.text(i) in PAIRS.values())
            if self.text(i) == "," and depth == 0:
                parts.append((begun, i))
                begun = i + 1
        return [*parts, (begun, end)] if begun < end else parts

    def add(self, at: int, end: int, kind: str = "", opposite: bool = False) -> None:
        """Keep a statement whose expression lies between two places."""
        end = min(end, len(self.words))
        words = self.words[at:end]
        if not words:
            return
        try:
            if len(words) > MOST_WORDS:
                raise ExpressionError("too long")
            tree = Parser(words, self.known).read_all()
        except (ExpressionError, RecursionError):
            tree = ("?", *(("v", one.text) if one.kind == "word" else ("k", one.text) for one in words[:MOST_WORDS]))
        tree = negate(tree) if opposite else tree
        self.keep((kind, tree) if kind else tree, at, end)

    def keep(self, tree: Tree, at: int, end: int) -> None:
        """Keep a statement that has a tree already."""
        end = min(end, len(self.words))
        lines = self.words[at].line, self.words[end - 1].line
        text = " ".join(one.text for one in self.words[at:end])
        self.found.append(Statement(tree, lines, text, shape(tree)))


# -- variables --


def find_target(tree: Tree) -> tuple[str, bool]:
    """Return the variable that a statement sets, "" if none, and whether its old value is lost."""
    operator = tree[0]
    if operator in ("make", "array", "shared"):
        return next(iter(find_names(tree)), ""), True
    if operator.startswith("=") and operator != "==" and tree[1][0] in ("v", "p"):
        return tree[1][1], operator == "="
    return "", False


def inline_values(statements: Sequence[Statement], only_indices: bool = False) -> list[Statement]:
    """Return the statements of each function without variables that are set once and used once.

    The value stands where the variable stood, and the line of the use counts. only_indices: those in subscripts alone.
    """
    found: list[Statement] = []
    begun = 0
    for i in range(1, len(statements) + 1):
        if i == len(statements) or statements[i].tree[0] == "function":
            found += _inline_function(statements[begun:i], only_indices)
            begun = i
    return found


def _inline_function(statements: Sequence[Statement], only_indices: bool) -> list[Statement]:
    count = Counter(name for one in statements for name in find_names(one.tree))
    targets = Counter(find_target(one.tree)[0] for one in statements)
    once = {name for name in targets if targets[name] == 1 and count[name] == 2}
    if only_indices:
        once &= {name for one in statements for name in find_indices(one.tree)}
    values: dict[str, Tree] = {}
    found = []
    for one in statements:
        tree = one.tree
        held = [name for name in dict.fromkeys(find_names(tree)) if name in values]
        for name in held:
            tree = replace_name(tree, name, values.pop(name))
        name, whole = find_target(tree)
        form = shape(tree) if held else one.shape
        if whole and tree[0] == "=" and tree[1][0] == "v" and name in once and len(form) < MOST_INLINED:
            values[name] = tree[2]
            continue
        found.append(Statement(tree, one.lines, one.text, form) if held else one)
    return found


# -- Python --


def _find_docstrings(tree: ast.Module) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        for one in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                found.add(id(one.value))
    return found


def _read_python(tree: ast.Module, docstrings: set[int], found: Reading) -> None:
    """Add the simple statements of Python and the heads of the others."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
            continue
        if isinstance(node, ast.Expr) and id(node.value) in docstrings:
            continue
        if len(found.statements) >= MOST_STATEMENTS:
            return
        made = _make_tree(node, 0)
        body = getattr(node, "body", None)
        alone = isinstance(body, list) or _holds_text(node)
        last = node.lineno if alone else node.end_lineno or node.lineno
        text = " ".join(dict.fromkeys(find_names(made)))
        found.statements.append(Statement(made, (node.lineno, last), text, shape(made)))


def _holds_text(node: ast.stmt) -> bool:
    """Return whether a statement's lines are those of a string, in which there may be C++."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _make_tree(node: ast.AST, depth: int) -> Tree:
    """Return the tree of a statement of Python without its body."""
    if depth > MOST_NESTING:
        return ("…",)
    if isinstance(node, ast.Name):
        return ("v", node.id)
    if isinstance(node, ast.arg):
        return ("v", node.arg)
    if isinstance(node, ast.Attribute):
        return (".", _make_tree(node.value, depth + 1), ("k", node.attr) if _is_torch(node) else ("v", node.attr))
    if isinstance(node, ast.Constant):
        return ("s", "") if isinstance(node.value, (str, bytes)) else ("k", repr(node.value)[:40])
    parts: list[Tree] = []
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "finalbody", "handlers", "ctx", "annotation", "returns", "decorator_list"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                parts.append(_make_tree(one, depth + 1))
    return (type(node).__name__, *parts)


def _is_torch(node: ast.Attribute) -> bool:
    base = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id in ("torch", "nn", "F")
