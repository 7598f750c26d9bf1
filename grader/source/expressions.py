"""Parse C++ expressions into trees that are equal where only names, order or spelling differ.

A tree is a tuple: an operator and its operands, or a leaf: ("v", name), ("n", number), ("k", a name of CUDA or C++),
("p", the place of a parameter in its function's list).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simt.frontend.tokens import Token

Tree = tuple
MOST_NUMBER = 1 << 64
MOST_DEPTH = 120  # of nested expressions: less than Python's own limit allows

QUALIFIERS = set("const constexpr static inline extern volatile register mutable typename struct __restrict__".split())
QUALIFIERS |= {"__restrict", "restrict", "__device__", "__host__", "__global__", "__constant__", "__forceinline__"}
TYPES = set("void bool char short int long unsigned signed float double auto size_t ssize_t ptrdiff_t half".split())
TYPES |= {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
TYPES |= {"scalar_t", "uint", "__half", "__nv_bfloat16", "float2", "float4", "int2", "int4", "dim3", "Tensor"}
# functions that have several spellings
SPELLINGS = {"fmaxf": "max", "fminf": "min", "fmax": "max", "fmin": "min", "__expf": "exp", "__logf": "log"}
SPELLINGS |= {f"{name}f": name for name in "sqrt rsqrt exp log fabs pow tanh floor ceil fma erf log1p expm1".split()}
LEAVES = {"v", "p", "k", "n", "s"}
COMMUTATIVE = {"max", "min", "==", "!=", "&&", "||", "|", "^"}
UNORDERED = {*COMMUTATIVE, "+", "*"}
BINARY = {
    **dict.fromkeys(("*", "/", "%"), 11),
    **dict.fromkeys(("+", "-"), 10),
    **dict.fromkeys(("<<", ">>"), 9),
    **dict.fromkeys(("<", "<=", ">", ">="), 8),
    **dict.fromkeys(("==", "!="), 7),
    "&": 6,
    "^": 5,
    "|": 4,
    "&&": 3,
    "||": 2,
}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
OPERATORS = sorted({*BINARY, *ASSIGNMENTS, "++", "--", "!"}, key=len, reverse=True)
NEGATED = {"<": "<=", "<=": "<", "==": "!=", "!=": "=="}
# names that keep their meaning in every program
BUILTIN = re.compile(
    r"threadIdx|blockIdx|blockDim|gridDim|warpSize|__\w+|atomic\w+|torch|at|c10|std|cuda\w*|TORCH_\w+|C10_\w+|"
    r"sqrt|rsqrt|fma|exp|log|abs|fabs|pow|max|min|tanh|floor|ceil|erf|log1p|expm1|true|false|nullptr|INFINITY|FLT_MAX|"
    r"dim3|empty|empty_like|zeros|this"
)
MEMBERS = {"size", "sizes", "numel", "dim", "device", "contiguous", "data_ptr", "options", "item", "is_cuda", "stride"}
ONE, MINUS_ONE, ZERO = ("n", 1), ("n", -1), ("n", 0)


class ExpressionError(ValueError):
    """Raised for tokens that are no expression of the subset that this module reads."""


@dataclass(frozen=True)
class Word:
    """A token, or several that make one operator."""

    kind: str
    text: str
    line: int


def join_operators(tokens: Sequence[Token]) -> list[Word]:
    """Return the tokens without spaces and comments; characters that make one operator are one word."""
    found: list[Word] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "mark" and len(token.text) == 1:
            text = "".join(one.text for one in tokens[i : i + 3] if one.kind == "mark" and len(one.text) == 1)
            run = next((op for op in OPERATORS if text.startswith(op) and _is_run(tokens, i, len(op))), token.text)
            found.append(Word("mark", run, token.line))
            i += len(run)
            continue
        if token.kind not in ("space", "comment"):
            found.append(Word(token.kind, token.text, token.line))
        i += 1
    return found


def _is_run(tokens: Sequence[Token], i: int, length: int) -> bool:
    return all(one.kind == "mark" and len(one.text) == 1 for one in tokens[i : i + length])


def read_number(text: str) -> Tree:
    """Return the leaf of a number: 1.0f, 1 and 1L are equal."""
    plain = text.replace("'", "")
    try:
        if plain.lower().startswith(("0x", "0b")):
            return make_number(int(plain.rstrip("uUlL"), 0))
        value = float(plain.rstrip("uUlLfFhH"))
    except (ValueError, OverflowError):
        return ("n", plain)
    return make_number(int(value) if math.isfinite(value) and value == int(value) else value)


def make_number(value: float) -> Tree:
    """Return the leaf of a number; all that no 64 bits hold are one."""
    return ("n", value if abs(value) <= MOST_NUMBER else "large")


class Parser:
    """Reads one expression. known: names that stand for a tree."""

    def __init__(self, words: Sequence[Word], known: Mapping[str, Tree]):
        self.words, self.at, self.known, self.depth = words, 0, known, 0

    def peek(self, ahead: int = 0) -> str:
        """Return the text of a word to come, "" behind the last."""
        at = self.at + ahead
        return self.words[at].text if at < len(self.words) else ""

    def take(self, text: str = "") -> Word:
        """Return the next word. Raises ExpressionError if there is none, or another than `text`."""
        if self.at >= len(self.words) or (text and self.peek() != text):
            raise ExpressionError(text)
        self.at += 1
        return self.words[self.at - 1]

    def read_all(self) -> Tree:
        """Return the tree of all words. Raises ExpressionError."""
        found = self.assignment()
        while self.peek() == ",":
            self.take()
            found = (",", found, self.assignment())
        if self.at != len(self.words):
            raise ExpressionError(self.peek())
        return found

    def assignment(self) -> Tree:
        """Return an expression without a comma at its top."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise ExpressionError("nested too deeply")
        left = self.binary(2)
        if self.peek() == "?":
            self.take()
            yes = self.assignment()
            self.take(":")
            left = ("?", left, yes, self.assignment())
        elif self.peek() in ASSIGNMENTS:
            operator = self.take().text
            left = make_assignment(operator, left, self.assignment())
        self.depth -= 1
        return left

    def binary(self, least: int) -> Tree:
        """Return operands that operators of at least this precedence join."""
        left = self.unary()
        while BINARY.get(self.peek(), 0) >= least:
            operator = self.take().text
            left = make_binary(operator, left, self.binary(BINARY[operator] + 1))
        return left

    def unary(self) -> Tree:
        """Return an operand with what stands before and behind it."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise ExpressionError("nested too deeply")
        text = self.peek()
        if text in ("++", "--"):
            self.take()
            found = make_assignment("+=", self.unary(), ONE if text == "++" else MINUS_ONE)
        elif text in ("-", "+", "!", "~", "*", "&"):
            self.take()
            found = make_unary(text, self.unary())
        elif text == "(" and self._is_cast():
            while self.take().text != ")":
                pass
            found = self.unary()
        else:
            found = self.postfix()
        self.depth -= 1
        return found

    def _is_cast(self) -> bool:
        """Return whether the brackets ahead hold a type alone."""
        ahead = 1
        while self.peek(ahead) in TYPES | QUALIFIERS | {"*", "&", "::", "std", "torch"}:
            ahead += 1
        held = {self.peek(i) for i in range(1, ahead)}
        return self.peek(ahead) == ")" and bool(held & TYPES)

    def postfix(self) -> Tree:
        """Return a primary expression with its subscripts, members, calls and launches."""
        found = self.primary()
        while True:
            text = self.peek()
            if text == "[":
                self.take()
                index = self.assignment()
                self.take("]")
                found = make_access(found, index)
            elif text in (".", "->"):
                self.take()
                found = make_member(found, self.take().text)
            elif text == "(":
                found = make_call(found, self.arguments("(", ")"))
            elif text == "<<<":
                setup = self.arguments("<<<", ">>>")
                found = ("launch", (",", *setup), (",", *self.arguments("(", ")")))
            elif text == "<" and (behind := self._template_end()):
                self.at = behind
            elif text in ("++", "--"):
                self.take()
                found = make_assignment("+=", found, ONE if text == "++" else MINUS_ONE)
            else:
                return found

    def _template_end(self) -> int:
        """Return the place behind template arguments that begin here, 0 if none do."""
        for at in range(self.at + 1, min(self.at + 12, len(self.words))):
            text = self.words[at].text
            if text == ">":
                return at + 1 if at + 1 < len(self.words) and self.words[at + 1].text in ("(", "<<<") else 0
            if self.words[at].kind not in ("word", "number") and text not in ("::", ",", "*"):
                return 0
        return 0

    def arguments(self, first: str, last: str) -> list[Tree]:
        """Return the expressions between two brackets."""
        self.take(first)
        found = []
        while self.peek() != last:
            found.append(self.assignment())
            if self.peek() == ",":
                self.take()
        self.take(last)
        return found

    def primary(self) -> Tree:
        """Return a leaf, or what brackets hold."""
        word = self.take()
        if word.text == "(":
            found = self.assignment()
            while self.peek() == ",":
                self.take()
                found = (",", found, self.assignment())
            self.take(")")
            return found
        if word.text == "{":
            self.at -= 1
            return ("{", *self.arguments("{", "}"))
        if word.kind == "number":
            return read_number(word.text)
        if word.kind in ("string", "char"):
            return ("s", word.text)
        if word.kind != "word":
            raise ExpressionError(word.text)
        name = word.text
        while self.peek() == "::":
            self.take()
            name = self.take().text
        if name.endswith("_cast") and self.peek() == "<":
            while self.take().text != ">":
                pass
            return self.primary()
        return self.known.get(name) or make_leaf(name)


def make_leaf(name: str) -> Tree:
    """Return the leaf of a name."""
    name = SPELLINGS.get(name, name)
    return ("k", name) if BUILTIN.fullmatch(name) or name in TYPES else ("v", name)


def make_member(base: Tree, name: str) -> Tree:
    """Return base.name; threadIdx.x and the like are one leaf."""
    return (
        ("k", f"{base[1]}.{name}")
        if base[0] == "k"
        else (".", base, ("k", name) if name in MEMBERS else make_leaf(name))
    )


def make_access(base: Tree, index: Tree) -> Tree:
    """Return what lies at base + index: x[i] and *(x + i) are equal."""
    return ("@", add(base, index))


def make_call(function: Tree, arguments: list[Tree]) -> Tree:
    """Return a call; fused multiply-add, reciprocal roots, __ldg and casts become what they compute."""
    name = function[1] if function[0] == "k" else ""
    if name in TYPES and len(arguments) == 1:
        return arguments[0]
    if name in ("fma", "__fmaf_rn") and len(arguments) == 3:
        return add(multiply(arguments[0], arguments[1]), arguments[2])
    if name == "rsqrt" and len(arguments) == 1:
        return ("/", ONE, ("call", ("k", "sqrt"), arguments[0]))
    if name == "pow" and arguments[1:] == [("n", 2)]:
        return multiply(arguments[0], arguments[0])
    if name == "__ldg" and len(arguments) == 1:
        return make_access(arguments[0], ZERO)
    if name in COMMUTATIVE:
        arguments = sorted(arguments, key=shape)
    return ("call", function, *arguments)


def make_unary(operator: str, operand: Tree) -> Tree:
    """Return an operator before an operand."""
    if operator == "-":
        return multiply(MINUS_ONE, operand)
    if operator == "*":
        return make_access(operand, ZERO)
    if operator == "&" and operand[0] == "@":
        return operand[1]
    if operator == "!":
        return negate(operand)
    return operand if operator == "+" else (operator, operand)


def negate(tree: Tree) -> Tree:
    """Return the opposite of a condition."""
    if tree[0] in ("<", "<="):
        return (NEGATED[tree[0]], tree[2], tree[1])
    if tree[0] in NEGATED:
        return (NEGATED[tree[0]], *tree[1:])
    if tree[0] in ("&&", "||"):
        return join("||" if tree[0] == "&&" else "&&", [negate(one) for one in tree[1:]])
    return tree[1] if tree[0] == "!" else ("!", tree)


def join(operator: str, operands: list[Tree]) -> Tree:
    """Return an operation whose operands have no order, nested ones taken in."""
    flat = [inner for one in operands for inner in (one[1:] if one[0] == operator else (one,))]
    return (operator, *sorted(flat, key=shape))


def make_binary(operator: str, left: Tree, right: Tree) -> Tree:
    """Return an operation in its canonical form."""
    if operator in (">", ">="):
        return ("<" if operator == ">" else "<=", right, left)
    if operator in COMMUTATIVE:
        return join(operator, [left, right])
    if operator == "+":
        return add(left, right)
    if operator == "-":
        return add(left, multiply(MINUS_ONE, right))
    if operator == "*":
        return multiply(left, right)
    count = right[1] if right[0] == "n" and isinstance(right[1], int) else -1
    if operator == "<<" and 0 <= count < 64:
        return multiply(left, ("n", 1 << count))
    if operator == ">>" and 0 <= count < 64:
        return ("/", left, ("n", 1 << count))
    if operator == "&" and count > 0 and (count & (count + 1)) == 0:
        return ("%", left, ("n", count + 1))
    if operator == "/" and left[0] == "n" == right[0] and isinstance(left[1], int) and count > 0:
        return ("n", left[1] // count)
    if operator == "/" and left[0] == "/":  # i / W / OH is i / (W * OH)
        return ("/", left[1], multiply(left[2], right))
    return (operator, left, right)


def make_assignment(operator: str, target: Tree, value: Tree) -> Tree:
    """Return an assignment: i++, i += 1 and i = i + 1 are equal."""
    if operator == "-=":
        return ("=+", target, multiply(MINUS_ONE, value))
    if operator in ("<<=", ">>="):
        operator, value = operator[:-1] + "=", value
        made = make_binary(operator[:-1], target, value)
        return _find_update(target, made)
    if operator != "=":
        return ("=" + operator[:-1], target, value)
    return _find_update(target, value)


def _find_update(target: Tree, value: Tree) -> Tree:
    """Return target = value, or the update that it is: + for a sum that holds the target, and so on."""
    terms = _terms(value)
    if len(terms) > 1 and terms.get((target,)) == 1:
        return ("=+", target, _from_terms({key: n for key, n in terms.items() if key != (target,)}))
    if value[0] == "*" and target in value[1:]:
        rest = list(value[1:])
        rest.remove(target)
        return ("=*", target, rest[0] if len(rest) == 1 else ("*", *rest))
    if value[0] in ("/", "%") and value[1] == target:
        return ("=" + value[0], target, value[2])
    return ("=", target, value)


# -- sums of products --


def add(left: Tree, right: Tree) -> Tree:
    """Return a sum in its canonical form: like terms collected, then sorted."""
    terms = dict(_terms(left))
    for key, count in _terms(right).items():
        terms[key] = terms.get(key, 0) + count
    return _from_terms(terms)


def multiply(left: Tree, right: Tree) -> Tree:
    """Return a product in its canonical form: numbers multiplied, factors sorted; a sum's sign goes to its terms."""
    for one, other in ((left, right), (right, left)):
        if one == MINUS_ONE and other[0] == "+":
            return _from_terms({key: -number for key, number in _terms(other).items()})
    factors = [factor for one in (left, right) for factor in (one[1:] if one[0] == "*" else (one,))]
    ((key, number),) = _terms(("*", *factors)).items()
    return _from_terms({key: number})


def _terms(tree: Tree) -> dict[tuple, float]:
    """Return the terms of a sum: the factors of each, and its number."""
    if tree[0] == "n" and not isinstance(tree[1], str):
        return {(): tree[1]}
    found: dict[tuple, float] = {}
    for one in tree[1:] if tree[0] == "+" else (tree,):
        factors = one[1:] if one[0] == "*" else (one,)
        number = 1
        rest = []
        for factor in factors:
            if factor[0] == "n" and not isinstance(factor[1], str):
                number *= factor[1]
            else:
                rest.append(factor)
        key = tuple(sorted(rest, key=repr))
        found[key] = found.get(key, 0) + number
    return found


def _from_terms(terms: dict[tuple, float]) -> Tree:
    """Return the sum of terms."""
    parts = []
    for key, number in terms.items():
        if number == 0:
            continue
        factors = sorted(key, key=shape)
        if not key:
            parts.append(make_number(number))
        elif number != 1:
            parts.append(("*", make_number(number), *factors))
        else:
            parts.append(factors[0] if len(factors) == 1 else ("*", *factors))
    if not parts:
        return ZERO
    return parts[0] if len(parts) == 1 else ("+", *sorted(parts, key=shape))


def shape(tree: Tree) -> str:
    """Return the text of a tree without the program's own names."""
    if tree[0] == "v":
        return "v"
    if tree[0] in LEAVES:
        return '""' if tree[0] == "s" else str(tree[1])
    parts = [shape(one) for one in tree[1:]]
    return f"{tree[0]}({' '.join(sorted(parts) if tree[0] in UNORDERED else parts)})"


def find_names(tree: Tree) -> list[str]:
    """Return the program's own names in a tree, each as often as it occurs."""
    if tree[0] in ("v", "p"):
        return [tree[1]]
    return [] if tree[0] in LEAVES else [name for one in tree[1:] for name in find_names(one)]


def replace_name(tree: Tree, name: str, value: Tree) -> Tree:
    """Return a tree with a value in the place of a name, in its canonical form."""
    if tree[0] == "v":
        return value if tree[1] == name else tree
    if tree[0] in LEAVES or name not in find_names(tree):
        return tree
    parts = [replace_name(one, name, value) for one in tree[1:]]
    if tree[0] in ("+", "*"):
        made = parts[0]
        for one in parts[1:]:
            made = add(made, one) if tree[0] == "+" else multiply(made, one)
        return made
    return (tree[0], *parts)


def find_indices(tree: Tree, inside: bool = False) -> list[str]:
    """Return the names in subscripts."""
    if tree[0] == "v":
        return [tree[1]] if inside else []
    if tree[0] in LEAVES:
        return []
    return [name for one in tree[1:] for name in find_indices(one, inside or tree[0] == "@")]
