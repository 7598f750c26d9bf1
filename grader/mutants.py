"""Rewrites CUDA code once, so that many small edits of it can be tried one after another without compiling again.

Each edit (another comparison, another variable, a term dropped, a barrier added, …) is a mutant with a number; the variable `grader_mutant` of
the built extension says which one is in force, 0 for none. This is mutant schemata (Untch, Offutt, Harrold 1993). An operator is replaced by
two that stand around a tag, `a * b` by `a * Mul{7} * b`, which keeps precedence without a parser.
"""

from __future__ import annotations

import dataclasses
import re

from simt.tokens import Token, angle_end, closing_of, directives_of, next_token, text_at, tokenize


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One edit. line: of the string, from 1. kind: of KINDS. until: for what is missing, the line before which it belongs.
    depth: how many { } it stands in."""

    number: int
    line: int
    kind: str
    until: int = 0
    depth: int = 0


# What each kind of edit changes, likeliest first: of two lines whose edits repair a kernel equally well, the one further up is named.
KINDS = (
    "comparison", "index", "variable", "swapped", "first value", "operator", "term", "number", "order", "parentheses", "type", "outer index",
    "first pass", "shared loop", "unused", "function", "bounds test", "barrier", "scale", "argument", "call", "identity", "each value",
    "condition", "statement",
)  # fmt: skip

INTS = {"int", "unsigned", "long", "short", "size_t", "int64_t", "int32_t", "uint32_t", "uint64_t", "int16_t", "uint16_t", "uint8_t", "int8_t"}
FLOATS = {"float", "double", "scalar_t"}
OTHERS = {"void", "bool", "char", "auto", "dim3", "half", "__half", "half2", "float2", "float3", "float4", "int2", "int4", "uint4", "double2", "T"}
TYPES = INTS | FLOATS | OTHERS
QUALIFIERS = {"const", "constexpr", "static", "volatile", "__shared__", "extern", "signed", "register"}
KEYWORDS = {"return", "else", "case", "do", "if", "for", "while", "switch", "sizeof", "break", "continue", "goto", "new", "delete", "throw"}
PAIRED = ("<<=", ">>=", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", "<<", ">>")
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
MATH = {"expf", "exp", "logf", "log", "sqrtf", "sqrt", "rsqrtf", "rsqrt", "tanhf", "tanh", "fabsf", "fabs", "__expf", "__logf"}
EXCHANGED = {"fmaxf": "fminf", "fminf": "fmaxf", "sqrtf": "rsqrtf", "rsqrtf": "sqrtf", "max": "min", "min": "max", "fmax": "fmin", "fmin": "fmax"}
CHECKS = re.compile(r"TORCH_\w+|C10_\w+|AT_\w+|CHECK\w*|static_assert|printf|assert|cuda\w+|PYBIND11_MODULE")
OPERATORS = {"+": ("Add", "term", 4), "-": ("Sub", "term", 3), "*": ("Mul", "operator", 4), "/": ("Div", "operator", 5), "%": ("Mod", "operator", 3)}
COMPARISONS = {"<": ("Lt", 5), "<=": ("Le", 5), ">": ("Gt", 5), ">=": ("Ge", 5)}
MOST = 4000  # mutants of one source
BIRTH = -1  # no edit: the kernel stops where a finite number becomes infinity or NaN

PRELUDE = r"""
_Pragma("GCC optimize (\"O1\")")
extern "C" { __attribute__((visibility("default"))) int grader_mutant = 0; }
namespace grader_edits {
inline bool odd(float v) { return __builtin_isnan(v) || __builtin_isinf(v); }
inline bool odd(double v) { return __builtin_isnan(v) || __builtin_isinf(v); }
template <class T> inline bool odd(const T&) { return false; }
inline int on(int id) { return grader_mutant - id; }
template <class T> inline int on(const T& t) { return t.twin && grader_mutant >= t.twin && grader_mutant < t.twin + 5 ? grader_mutant -
    t.twin : grader_mutant - t.id; }
template <class R> inline R born(R r, bool before, int line) { if (grader_mutant == -1 && !before && odd(r))
    ::simt::device_assert("finite", line); return r; }
struct Add { int id, line, twin; }; struct Sub { int id, line, twin; }; struct Mul { int id, line, twin; }; struct Div { int id, line,
    twin; }; struct Mod { int id, line, twin; };
template <class A, class T> struct Left { A a; T t; };
template <class A> inline Left<A, Add> operator+(A a, Add t) { return {a, t}; }
template <class A> inline Left<A, Sub> operator-(A a, Sub t) { return {a, t}; }
template <class A> inline Left<A, Mul> operator*(A a, Mul t) { return {a, t}; }
template <class A> inline Left<A, Div> operator/(A a, Div t) { return {a, t}; }
template <class A> inline Left<A, Mod> operator%(A a, Mod t) { return {a, t}; }
template <class A, class B> inline auto operator+(Left<A, Add> l, B b) -> decltype(l.a + b) {
  using R = decltype(l.a + b);
  int k = on(l.t);
  if (k == 0) { if constexpr (requires { R(l.a - b); }) return R(l.a - b); }
  if (k == 1) { if constexpr (requires { R(l.a); }) return R(l.a); }
  if (k == 2) { if constexpr (std::is_arithmetic_v<B> && std::is_arithmetic_v<R>) return R(b); }
  if (k == 3) { if constexpr (requires { R(l.a * b); }) return R(l.a * b); }
  return born<R>(l.a + b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator-(Left<A, Sub> l, B b) -> decltype(l.a - b) {
  using R = decltype(l.a - b);
  int k = on(l.t);
  if (k == 0) { if constexpr (requires { R(l.a + b); }) return R(l.a + b); }
  if (k == 1) { if constexpr (std::is_arithmetic_v<R>) return R(l.a); }
  if (k == 2) { if constexpr (std::is_integral_v<R>) return R(l.a - b + 1); }
  return born<R>(l.a - b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator*(Left<A, Mul> l, B b) -> decltype(l.a * b) {
  using R = decltype(l.a * b);
  int k = on(l.t);
  if (k == 0) { if constexpr (std::is_arithmetic_v<B> && requires { R(l.a / b); }) return b == 0 ? R(l.a) : R(l.a / b); }
  if (k == 1) { if constexpr (requires { R(l.a); }) return R(l.a); }
  if (k == 2) { if constexpr (std::is_arithmetic_v<B> && std::is_arithmetic_v<R>) return R(b); }
  if (k == 3) { if constexpr (requires { R(l.a + b); }) return R(l.a + b); }
  return born<R>(l.a * b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator/(Left<A, Div> l, B b) -> decltype(l.a / b) {
  using R = decltype(l.a / b);
  int k = on(l.t);
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) if (l.t.line < 0 && b == 0) throw std::runtime_error("a division by zero");
  if (k == 0) { if constexpr (requires { R(l.a * b); }) return R(l.a * b); }
  if (k == 1) { if constexpr (requires { R(l.a); }) return R(l.a); }
  if (k == 2) { if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) if (b != 0) return R(l.a % b); }
  if (k == 3) { if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) if (b != 0) return R(l.a / b + (l.a % b != 0)); }
  if (k == 4) { if constexpr (std::is_integral_v<R>) if (b != 0) return R(l.a / b + 1); }
  return born<R>(l.a / b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator%(Left<A, Mod> l, B b) -> decltype(l.a % b) {
  using R = decltype(l.a % b);
  int k = on(l.t);
  if (l.t.line < 0 && b == 0) throw std::runtime_error("a division by zero");
  if (k == 0 && b != 0) return R(l.a / b);
  if (k == 1) return R(l.a);
  if (k == 2) return R(l.a * b);
  return l.a % b;
}
struct Lt { int id; }; struct Le { int id; }; struct Gt { int id; }; struct Ge { int id; };
template <class A> inline Left<A, Lt> operator<(A a, Lt t) { return {a, t}; }
template <class A> inline Left<A, Le> operator<=(A a, Le t) { return {a, t}; }
template <class A> inline Left<A, Gt> operator>(A a, Gt t) { return {a, t}; }
template <class A> inline Left<A, Ge> operator>=(A a, Ge t) { return {a, t}; }
template <class A, class B> inline bool operator<(Left<A, Lt> l, B b) { int k = on(l.t.id); return k == 0 ? l.a <= b : k == 1 ? l.a >= b
    : k == 2 ? l.a > b : k == 3 ? true : k == 4 ? false : l.a < b; }
template <class A, class B> inline bool operator<=(Left<A, Le> l, B b) { int k = on(l.t.id); return k == 0 ? l.a < b : k == 1 ? l.a > b :
    k == 2 ? l.a >= b : k == 3 ? true : k == 4 ? false : l.a <= b; }
template <class A, class B> inline bool operator>(Left<A, Gt> l, B b) { int k = on(l.t.id); return k == 0 ? l.a >= b : k == 1 ? l.a <= b
    : k == 2 ? l.a < b : k == 3 ? true : k == 4 ? false : l.a > b; }
template <class A, class B> inline bool operator>=(Left<A, Ge> l, B b) { int k = on(l.t.id); return k == 0 ? l.a > b : k == 1 ? l.a < b :
    k == 2 ? l.a <= b : k == 3 ? true : k == 4 ? false : l.a >= b; }
template <class T> inline T number(int id, T v) { switch (on(id)) { case 0: return v + 1; case 1: return v - 1; case 2: return 2 * v;
    case 3: return v / 2; case 4: return 1; case 5: return 0; case 6: return T(-INFINITY); case 7: return T(INFINITY); } return v; }
template <class T> inline T moved(int id, T v) { int k = on(id); if constexpr (std::is_integral_v<T>) { if (k == 0) return v + 1; if (k
    == 1) return v - 1; } return v; }
template <class A, class T> inline T index(int id, int line, const A&, T v) {
  v = moved(id, v);
  if constexpr (std::is_array_v<A> && std::is_integral_v<T>) if (grader_mutant && (unsigned long long)v >= std::extent_v<A>)
      ::simt::device_assert("inside", line);
  return v;
}
inline bool test(int id, bool v) { int k = on(id); return k == 0 ? false : k == 1 ? true : k == 2 ? !v : v; }
template <class T, class U> inline void one(T& chosen, int k, U other) {
  if (k != 0) return;
  if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<U>) chosen = T(other);
  else if constexpr (std::is_same_v<T, U>) chosen = other;
}
template <class T, class... U> inline T pick(int id, T v, U... others) {
  unsigned k = on(id);
  if (k < sizeof...(U)) { T chosen = v; int n = 0; (one(chosen, int(k) - n++, others), ...); return chosen; }
  return v;
}
template <class S> inline long long narrow(int id, long long v) { return on(id) == 0 ? v : (long long)(S)v; }
template <class F> struct Known { int line; F f; template <class A> auto operator()(A a) const -> decltype(f(a)) { return born(f(a),
    odd(a), line); } };
template <class F> inline Known<F> known(int line, F f) { return {line, f}; }
template <class F, class G> struct Either { int id; F f; G g; template <class... A> auto operator()(A... a) const -> decltype(f(a...)) {
    return on(id) == 0 ? g(a...) : f(a...); } };
template <class F, class G> inline Either<F, G> either(int id, F f, G g) { return {id, f, g}; }
}
"""


@dataclasses.dataclass
class _Variable:
    """A parameter or a local variable. kind: "int", "float", a pointer's type, or "" for what is left alone. at: where it is declared (token),
    end: where its scope ends. first: the name of a copy of its first value. bound: the text of its upper bound, as far as known."""

    name: str
    kind: str
    at: int
    end: int
    parameter: bool = False
    const: bool = False
    first: str = ""
    bound: str = ""
    init: str = ""


@dataclasses.dataclass
class _Function:
    name: str
    gpu: bool
    kernel: bool
    start: int  # its {
    end: int  # its }
    variables: list[_Variable] = dataclasses.field(default_factory=list)
    barriers: bool = False
    shared: bool = False


def schema(source: str, first: int = 1, skip: set[int] = frozenset(), prelude: bool = True) -> tuple[str, list[Mutant]]:
    """The rewritten source, line for line, and its mutants, numbered from `first`. skip: lines to leave as they are.

    prelude: whether this is the first source of the extension, which must define what the others use too.
    """
    return _Schema(source, first, skip).made(prelude)


class _Schema:
    def __init__(self, source: str, first: int, skip: set[int]):
        self.source = source
        self.tokens = _paired(tokenize(source))
        self.next, self.skip = first, skip
        self.before: dict[int, list[str]] = {}
        self.after: dict[int, list[str]] = {}
        self.instead: dict[int, str] = {}
        self.mutants: list[Mutant] = []
        self.depth = 0
        self.twins: dict[tuple, int] = {}
        self.left: set[int] = set(directives_of(self.tokens))  # tokens to leave alone

    def made(self, prelude: bool) -> tuple[str, list[Mutant]]:
        self.functions = self._functions()
        self._leave_alone()
        for function in self.functions:
            self._body(function)
        parts = []
        for i, token in enumerate(self.tokens):
            parts += [*self.before.get(i, []), self.instead.get(i, token.text), *self.after.get(i, [])]
        head = " ".join(PRELUDE.split("\n")) if prelude else ""
        return head + "".join(parts), self.mutants

    # -- helpers --

    def next_(self, i: int, step: int = 1) -> int:
        return next_token(self.tokens, i, step)

    def text(self, i: int) -> str:
        return text_at(self.tokens, i)

    def raw(self, start: int, end: int) -> str:
        """The source of tokens [start, end), comments left out."""
        return "".join(" " if t.kind == "comment" else t.text for t in self.tokens[start:end])

    def put(self, start: int, head: str, end: int, tail: str) -> None:
        """Around the tokens from start to end, inside what is there already."""
        self.before.setdefault(start, []).append(head)
        self.after.setdefault(end, []).insert(0, tail)

    def number(self, i: int, kind: str, count: int = 1, until: int = 0, anyway: bool = False) -> int | None:
        """The first of `count` new mutants at token i; None where the line, or the token unless `anyway`, is to be left alone."""
        line = self.tokens[i].line
        if line in self.skip or (i in self.left and not anyway) or len(self.mutants) + count > MOST:
            return None
        number = self.next
        self.mutants += [Mutant(number + k, line, kind, until) for k in range(count)]
        self.next += count
        return number

    # -- the map of the source --

    def _functions(self) -> list[_Function]:
        """Functions with a body, outside of others."""
        found, i, head = [], 0, 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.kind in ("space", "comment") or i in self.left:
                head = i + 1 if i in self.left else head
            elif token.text in (";", "}"):
                head = i + 1
            elif token.text == "(" and token.kind == "mark":
                i = max(i, closing_of(self.tokens, i))
            elif token.text == "{" and token.kind == "mark":
                closing = self.next_(i, -1)
                while closing >= 0 and self.text(closing) in ("const", "noexcept"):
                    closing = self.next_(closing, -1)
                end = closing_of(self.tokens, i)
                if self.text(closing) == ")" and end > 0:
                    found.append(self._function(head, closing, i, end))
                    i = end
                elif self.text(closing) == "=" or (end > 0 and {"struct", "class", "enum", "union"} & {t.text for t in self.tokens[head:i]}):
                    i = end
                head = i + 1
            i += 1
        return found

    def _function(self, head: int, closing: int, start: int, end: int) -> _Function:
        depth, opening = 0, closing
        while opening > head:
            depth += (self.text(opening) == ")") - (self.text(opening) == "(")
            if depth == 0:
                break
            opening -= 1
        words = {t.text for t in self.tokens[head:opening]}
        inside = [t.text for t in self.tokens[start:end]]
        gpu = bool({"__global__", "__device__"} & words)
        made = _Function(self.text(self.next_(opening, -1)), gpu, "__global__" in words, start, end)
        made.barriers, made.shared = "__syncthreads" in inside, "__shared__" in inside
        self.left |= set(range(head, start))
        depth, begun = 0, opening + 1
        for i in range(opening + 1, closing + 1):
            depth += (self.text(i) in ("(", "<", "[")) - (self.text(i) in (")", ">", "]"))
            if (self.text(i) == "," and depth == 0) or i == closing:
                variable = self._parameter(begun, i, start, end)
                made.variables += [variable] if variable else []
                begun = i + 1
        return made

    def _parameter(self, begun: int, until: int, start: int, end: int) -> _Variable | None:
        words = [t.text for t in self.tokens[begun:until] if t.kind == "word" and t.text not in ("__restrict__", "volatile")]
        marks = [t.text for t in self.tokens[begun:until] if t.kind == "mark"]
        if len(words) < 2 or "[" in marks:
            return None
        kind = _kind([w for w in words[:-1] if w != "const"], "*" in marks)
        return _Variable(words[-1], kind, start, end, True, "const" in words)

    def _leave_alone(self) -> None:
        """Marks what must stay constant, or is no expression: constexpr, template arguments, case labels, array sizes, checks."""
        for i, token in enumerate(self.tokens):
            if token.text in ("constexpr", "case", "template", "using", "typedef", "enum", "__launch_bounds__", "asm") and token.kind == "word":
                self.left |= set(range(i, self._until(i, (";", ":") if token.text == "case" else (";", "{", "}", ")"))))
            elif token.kind == "word" and CHECKS.fullmatch(token.text) and self.text(self.next_(i)) == "(" and not token.text.startswith("AT_DISPATCH"):
                self.left |= set(range(i, closing_of(self.tokens, self.next_(i)) + 1))
            elif token.text == "<" and self._is_template(i):
                self.left |= set(range(i, angle_end(self.tokens, i) + 1))

    def _until(self, i: int, ends: tuple[str, ...]) -> int:
        while i < len(self.tokens) and self.text(i) not in ends:
            i += 1
        return i

    def _is_template(self, i: int) -> bool:
        end = angle_end(self.tokens, i)
        if end < 0 or self.tokens[self.next_(i, -1)].kind != "word":
            return False
        inside = [t for t in self.tokens[i + 1 : end] if t.kind not in ("space", "comment")]
        after = self.text(self.next_(end))
        typed = any(t.text in TYPES | {"const", "torch", "std", "at"} for t in inside)
        plain = all(t.kind in ("word", "number") or t.text in (",", "::") for t in inside)
        return typed or (after in ("::", "{") and plain) or (after == "<<<" and bool(inside))

    # -- one function --

    def _body(self, function: _Function) -> None:
        self.function = function
        self.statements: list[tuple[int, int, bool]] = []  # first and last token, whether it stands in { }
        self.loops: list[tuple[int, int]] = []  # ( and ) of a for
        self.blocks: list[list[tuple[int, int]]] = []  # the statements of each { }, as their first and last tokens
        self._block(function.start, function.end)
        self._bounds_of()
        for start, end, inside in self.statements:
            self._statement(start, end, inside)
        for block in self.blocks if function.gpu else ():
            self._after_loops(block)
        for opening, closing in self.loops:
            self._loop(opening, closing)
        for i in range(function.start + 1, function.end):
            if i not in self.left:
                self._token(i)
        if function.gpu:
            self._decompositions()

    def _block(self, opening: int, closing: int) -> None:
        """The statements between { and }."""
        i, begun = self.next_(opening), []
        self.depth += 1
        while 0 <= i < closing:
            end = self._one(i, closing, True)
            begun.append((i, end))
            i = self.next_(end)
        self.blocks.append(begun)
        if self.function.gpu and self.function.shared:
            self._barriers(begun, closing)
        self.depth -= 1

    def _one(self, i: int, limit: int, inside: bool) -> int:
        """One statement that begins at i; its last token."""
        if i in self.left and self.text(i) == "#":
            while i + 1 in self.left and i + 1 < limit:
                i += 1
            return i
        text = self.text(i)
        if text == "{":
            end = closing_of(self.tokens, i)
            self._block(i, end)
            return end
        if text in ("if", "for", "while", "switch") and self.text(self.next_(i)) in ("(", "constexpr"):
            opening = self.next_(i)
            if self.text(opening) == "constexpr":
                opening = self.next_(opening)
                self.left |= set(range(opening, closing_of(self.tokens, opening)))
            closing = closing_of(self.tokens, opening)
            if text == "if":
                self._condition(opening, closing)
            elif text == "for":
                self.loops.append((opening, closing))
                self._for(opening, closing, limit)
            end = self._one(self.next_(closing), limit, False)
            after = self.next_(end)
            return self._one(self.next_(after), limit, False) if text == "if" and self.text(after) == "else" else end
        if text == "do":
            end = self._one(self.next_(i), limit, False)
            return self._to_semicolon(end, limit)
        end = self._to_semicolon(i, limit)
        self._declaration(i, end, limit)
        self.statements.append((i, end, inside))
        return end

    def _to_semicolon(self, i: int, limit: int) -> int:
        depth = 0
        for j in range(i, limit):
            text = self.text(j)
            if self.tokens[j].kind == "mark":
                depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            if text == ";" and depth <= 0:
                return j
        return limit - 1

    # -- declarations --

    def _declaration(self, i: int, end: int, limit: int) -> bool:
        """Takes note of the variables that a statement declares, if it declares any."""
        words, pointer, j, const = [], False, i, False
        while j < end and (self.tokens[j].kind == "word" and (self.text(j) in TYPES or self.text(j) in QUALIFIERS)):
            if self.text(j) in ("__shared__", "constexpr", "extern"):
                const = True
            words.append(self.text(j))
            j = self.next_(j)
        while self.text(j) in ("*", "&", "__restrict__"):
            pointer |= self.text(j) == "*"
            j = self.next_(j)
        if not {*words} & TYPES or self.tokens[j].kind != "word":
            return False
        self.left |= set(range(i, j))
        kind = "" if const else _kind([w for w in words if w not in QUALIFIERS], pointer)
        depth, named, init = 0, j, -1
        for k in range(j, end + 1):
            text = self.text(k)
            if (text in (",", ";") and depth == 0) or k == end:
                self._declared(named, kind, init, k, limit, "const" in words, words)
                named, init = self.next_(k), -1
                while self.text(named) == "*":
                    named = self.next_(named)
            elif text == "=" and depth == 0 and init < 0:
                init = self.next_(k)
            elif self.tokens[k].kind == "mark" and len(text) == 1:
                depth += (text in "([{") - (text in ")]}")
            if init < 0 and depth > 0:
                self.left.add(k)  # an array's size
        return True

    def _declared(self, named: int, kind: str, init: int, end: int, limit: int, const: bool, words: list[str]) -> None:
        self.left.add(named)
        array = self.text(self.next_(named)) in ("[", "(")
        made = _Variable(self.text(named), "" if array else kind, end, limit, const=const, init=self.raw(init, end) if init > 0 else "")
        self.function.variables.append(made)
        remainder = re.search(r"%\s*(\w+)\s*$", made.init)
        made.bound = remainder[1] if remainder else ""
        if kind == "int" and init > 0 and {"short", "char"} & {*words}:
            self._narrow(named, init, end, words)

    def _narrow(self, named: int, init: int, end: int, words: list[str]) -> None:
        number = self.number(init, "type")
        line = self.tokens[named].line
        begun = min((i for i in range(named) if i in self.left and self.tokens[i].line == line and self.text(i) in TYPES | QUALIFIERS), default=-1)
        if number is None or begun < 0:
            return
        for i in range(begun, named):
            self.instead[i] = "long long " if i == begun else ""
        self.put(init, f"grader_edits::narrow<{' '.join(w for w in words if w not in QUALIFIERS)}>({number}, ", self.next_(end, -1), ")")

    def _for(self, opening: int, closing: int, limit: int) -> None:
        first = self._to_semicolon(opening + 1, closing)
        before = len(self.function.variables)
        self._declaration(self.next_(opening), first, limit)
        second = self._to_semicolon(first + 1, closing)
        bound = re.match(r"\s*(\w+)\s*<\s*(\w+)\s*$", self.raw(first + 1, second))
        for variable in self.function.variables[before:]:
            variable.end = self._one_end(closing, limit)
            if bound and bound[1] == variable.name:
                variable.bound = bound[2]

    def _one_end(self, closing: int, limit: int) -> int:
        """About where the body of a loop ends: its }, or the first semicolon outside brackets."""
        start = self.next_(closing)
        while self.text(start) in ("for", "if", "while"):
            start = self.next_(closing_of(self.tokens, self.next_(start)))
        return closing_of(self.tokens, start) if self.text(start) == "{" else self._to_semicolon(start, limit)

    def _bounds_of(self) -> None:
        """Variables that are changed in place keep a copy of their first value."""
        for variable in self.function.variables:
            changed = any(
                self.text(i) == variable.name and self.text(self.next_(i)) in ASSIGNS - {"="} and i not in self.left
                and variable.at < i < variable.end and not any(a < i < b for a, b in self.loops)
                for i in range(self.function.start, self.function.end)
            )
            local = variable.kind == "int" and not variable.parameter and self.text(variable.at) == ";"
            if changed and local and not any(a < variable.at < b for a, b in self.loops):
                variable.first = f"grader_first_{variable.name}"
                self.after.setdefault(variable.at, []).append(f" const auto {variable.first} = {variable.name};")

    # -- statements --

    def _statement(self, i: int, end: int, inside: bool) -> None:
        """A statement that may be left out, a missing bounds test after it, a store that lacks a parameter."""
        function, text = self.function, self.text(i)
        if self.text(end) != ";" or not function.gpu:
            return
        if i not in self.left and text not in KEYWORDS and self.next_(i) < end:
            number = self.number(i, "statement")
            if number is not None:
                self.put(i, f"{{ if (grader_mutant != {number}) ", end, " }")
            self._first_pass(i, end)
        self._store(i, end)
        self._identity(i, end)
        if inside and i in self.left and not function.barriers:
            self._missing_test(i, end)

    def _first_pass(self, i: int, end: int) -> None:
        """`sum = 0;` in a loop, for the loop's first pass alone."""
        if not re.fullmatch(r"(?:\w+\s*=\s*)+-?[\d.]+f?\s*", self.raw(i, end)):
            return
        for variable in self._visible(i):
            counts = variable.init and any(a < variable.at < b for a, b in self.loops)
            if counts and (number := self.number(i, "first pass")) is not None:
                self.put(i, f"{{ if (grader_mutant != {number} || {variable.name} == ({variable.init})) ", end, " }")

    def _missing_test(self, i: int, end: int) -> None:
        """`if (i >= total) return;` after the declaration of the thread's index."""
        made = [v for v in self.function.variables if i < v.at <= end and v.kind == "int" and "Idx" in v.init]
        limits = [v.name for v in self.function.variables if v.parameter and v.kind == "int"]
        for variable in made:
            for limit in limits:
                number = self.number(i, "bounds test", until=self.tokens[self.next_(end)].line, anyway=True)
                if number is not None:
                    self.after.setdefault(end, []).append(f" if (grader_mutant == {number} && {variable.name} >= {limit}) return;")

    def _identity(self, i: int, end: int) -> None:
        """`return E;` of a function of one float: the float itself."""
        parameters = [v for v in self.function.variables if v.parameter]
        alone = not self.function.kernel and len(parameters) == 1 and parameters[0].kind == "float"
        if alone and self.text(i) == "return" and self._free(i, end) and (number := self.number(i, "identity")) is not None:
            self.put(self.next_(i), f"grader_mutant == {number} ? ({parameters[0].name}) : (", self.next_(end, -1), ")")

    def _store(self, i: int, end: int) -> None:
        """`y[i] = v` with a parameter in it that the function never uses."""
        equals = next((k for k in range(i, end) if self.text(k) == "=" and self.text(self.next_(k, -1)) == "]"), -1)
        if equals < 0 or not self._free(equals + 1, end):
            return
        used = [t.text for t in self.tokens[self.function.start : self.function.end] if t.kind == "word"]
        value = self.raw(equals + 1, end).strip()
        indices = [v.name for v in self._visible(i) if v.kind == "int" and not v.parameter]
        choices = []
        for variable in self.function.variables:
            if variable.parameter and variable.name not in used and "*" in variable.kind and variable.const:
                choices += [f"({value}) {sign} {variable.name}[{index}]" for index in indices for sign in "+*"]
            elif variable.parameter and variable.name not in used and variable.kind == "float":
                choices += [f"({value}) {sign} {variable.name}" for sign in "+*-"]
        if choices and (number := self.number(equals, "unused", len(choices))) is not None:
            text = "".join(f"grader_mutant == {number + k} ? ({choice}) : " for k, choice in enumerate(choices))
            self.put(self.next_(equals), f"({text}(", self.next_(end, -1), "))")

    def _after_loops(self, block: list[tuple[int, int]]) -> None:
        """`best *= s;` or `best = f(best);` after a loop that finds the best value: done with each value in the loop instead."""
        for position, (i, end) in enumerate(block):
            name, sign = self.text(i), self.text(self.next_(i))
            if sign not in ("=", "+=", "-=", "*=", "/=") or self.text(end) != ";" or not self._free(i, end):
                continue
            right = self.next_(self.next_(i))
            words = {t.text for t in self.tokens[right:end] if t.kind == "word"}
            if (sign == "=") is not (name in words):
                continue
            loop = next((pair for pair in reversed(block[:position]) if self.text(pair[0]) in ("for", "while")), None)
            values = self._compared(name, *loop) if loop else []
            known = {v.name: v for v in self.function.variables}
            values = [(a, b) for a, b in values if all(any(v.name == word for v in self._visible(a)) for word in words & {*known} - {name})]
            number = self.number(i, "each value") if values else None
            if number is None:
                continue
            self.put(i, f"{{ if (grader_mutant != {number}) ", end, " }")
            for first, last in values:
                value = f"({self.raw(first, last + 1).strip()})"
                done = [value if t.kind == "word" and t.text == name else t.text for t in self.tokens[right:end] if t.kind != "comment"]
                text = "".join(done) if sign == "=" else f"{value} {sign[0]} ({''.join(done)})"
                self.put(first, f"(grader_mutant == {number} ? ({text}) : (", last, "))")

    def _compared(self, name: str, start: int, end: int) -> list[tuple[int, int]]:
        """First and last tokens of the values of which a loop keeps one in a variable: of `float v = x[i]; if (v > best) best = v;` it is x[i]."""
        kept = {self.text(self.next_(self.next_(k))) for k in range(start, end) if self.text(k) == name and self.text(self.next_(k)) == "="}
        found = []
        for variable in self.function.variables:
            if variable.name in kept and variable.init and start < variable.at < end and variable.kind == "float":
                equals = next(k for k in range(variable.at, start, -1) if self.text(k) == "=")
                found.append((self.next_(equals), self.next_(variable.at, -1)))
        for k in range(start, end):
            opening = self.next_(k)
            if self.text(k) not in ("fmaxf", "fminf", "fmax", "fmin", "max", "min") or self.text(opening) != "(":
                continue
            comma = self.next_(self.next_(opening))
            if self.text(self.next_(opening)) == name and self.text(comma) == ",":
                found.append((self.next_(comma), self.next_(closing_of(self.tokens, opening), -1)))
        return [(a, b) for a, b in found if self._free(a, b + 1)]

    def _free(self, start: int, end: int) -> bool:
        return "\n" not in self.raw(start, end) and not any(k in self.left for k in range(start, end))

    def _barriers(self, statements: list[tuple[int, int]], closing: int) -> None:
        """A barrier before each statement of a block but the first of the function, and at the block's end."""
        for (_, end), following in zip(statements, [*[start for start, _ in statements[1:]], closing]):
            if self.text(self.next_(end, -1)) == ")" and "__syncthreads" in self.raw(max(0, end - 6), end):
                continue
            if following == self.function.end or self.text(self._first_word(statements, end)) == "return":
                continue
            number = self.number(end, "barrier", until=self.tokens[following].line)
            if number is not None:
                self.mutants[-1] = dataclasses.replace(self.mutants[-1], depth=self.depth)
                self.after.setdefault(end, []).append(f" if (grader_mutant == {number}) __syncthreads();")

    def _first_word(self, statements: list[tuple[int, int]], end: int) -> int:
        return next(start for start, last in statements if last == end)

    def _condition(self, opening: int, closing: int) -> None:
        if any(self.text(k) == "=" for k in range(opening, closing)) or opening in self.left or not self.function.gpu:
            return
        number = self.number(opening, "condition", 3)
        if number is not None:
            self.put(self.next_(opening), f"grader_edits::test({number}, (", self.next_(closing, -1), "))")

    def _loop(self, opening: int, closing: int) -> None:
        """A loop that all threads walk through whole instead of sharing it."""
        if not self.function.gpu or self.tokens[opening].line in self.skip:
            return
        match = re.fullmatch(r"\s*\w+\s+(\w+)\s*=\s*0\s*;[^;]*;\s*(?:\1\+\+|\+\+\1|\1\s*\+=\s*1)\s*", self.raw(opening + 1, closing))
        step = next((k for k in range(closing - 1, opening, -1) if self.text(k) == ";"), -1)
        zero = next((k for k in range(opening, closing) if self.text(k) == "0"), -1)
        if not match or zero < 0 or (number := self.number(opening, "shared loop")) is None:
            return
        self.instead[zero] = f"(grader_mutant == {number} ? (int)threadIdx.x : 0)"
        self.left.add(zero)
        for k in range(step + 1, closing):
            self.instead[k] = f" {match[1]} += grader_mutant == {number} ? (int)blockDim.x : 1" if k == step + 1 else ""
            self.left.add(k)

    def _decompositions(self) -> None:
        """`a = i % P; b = i / P % Q` in the other order: b = i % Q, a = i / Q % P."""
        plain = [v for v in self.function.variables if v.init]
        for one in plain:
            first = re.fullmatch(r"(\w+) % (\w+)", one.init.strip())
            for other in plain if first else []:
                second = re.fullmatch(r"(\w+) / (\w+) % (\w+)", other.init.strip())
                if not second or (second[1], second[2]) != (first[1], first[2]) or not one.at < other.at:
                    continue
                i, p, q = first[1], first[2], second[3]
                number = self.number(self.next_(one.at, -1), "order", until=self.tokens[self.next_(other.at, -1)].line)
                for variable, text in ((one, f"{i} / {q} % {p}"), (other, f"{i} % {q}")) if number is not None else ():
                    start = next(k for k in range(variable.at, -1, -1) if self.text(k) == "=")
                    self.before.setdefault(self.next_(start), []).insert(0, f"grader_mutant == {number} ? {text} : ")

    # -- tokens --

    def _token(self, i: int) -> None:
        token, before, after = self.tokens[i], self.next_(i, -1), self.next_(i)
        if token.kind == "number":
            self._number(i)
        elif token.kind == "word":
            self._word(i, before, after)
        elif token.kind == "mark" and before >= 0 and self._is_value(before):
            if token.text in OPERATORS:
                tag, kind, count = OPERATORS[token.text]
                number = self.number(i, kind, count)
                if number is not None:
                    twin = self._twin(i, kind, count)
                    line = token.line if self.function.gpu else -token.line
                    self.after.setdefault(i, []).append(f" grader_edits::{tag}{{{number}, {line}, {twin}}} {token.text}")
            elif token.text in COMPARISONS:
                tag, count = COMPARISONS[token.text]
                number = self.number(i, "comparison", count)
                if number is not None:
                    self.after.setdefault(i, []).append(f" grader_edits::{tag}{{{number}}} {token.text}")
            elif token.text == "[" and (closing := closing_of(self.tokens, i)) > 0 and self.function.gpu:
                number = self.number(i, "index", 2)
                array = self._indexed(before)
                if number is not None and array:
                    self.put(after, f"grader_edits::index({number}, {token.line}, {array}, ", self.next_(closing, -1), ")")
            elif token.text == "=" or token.text in ("+=", "-="):
                self._regroup(i)

    def _twin(self, i: int, kind: str, count: int) -> int:
        """The number of an edit of all operators that stand alike in a statement `a = H - K, b = W - K`, or 0."""
        start, ordinal, place = i, 0, 0
        while start > self.function.start and self.text(start - 1) not in (";", "{", "}"):
            start -= 1
            ordinal += self.text(start) == self.text(i) and not place
            place = place or (start if self.text(start) == "=" else 0)
        end = self._to_semicolon(i, self.function.end)
        initials = [re.sub(r"\w+", "v", part.partition("=")[2].strip()) for part in self.raw(start, end).split(",") if "=" in part]
        if self.function.gpu or not place or len(initials) < 2 or len(set(initials)) == len(initials):
            return 0
        key = (start, self.text(i), ordinal, re.sub(r"\w+", "v", self.raw(place + 1, i).strip()))
        if key not in self.twins:
            self.twins[key] = self.number(i, kind, count) or 0
        return self.twins[key]

    def _indexed(self, i: int) -> str:
        """What stands before a [, as an expression whose type is the same: `a`, or `a[0]` for a[k]."""
        brackets = ""
        while self.text(i) == "]":
            depth = 0
            while i > 0:
                depth += (self.text(i) == "]") - (self.text(i) == "[")
                if depth == 0:
                    break
                i -= 1
            i, brackets = self.next_(i, -1), brackets + "[0]"
        plain = self.tokens[i].kind == "word" and self.text(self.next_(i, -1)) not in (".", "->", "::")
        return self.text(i) + brackets if plain else "0"

    def _is_value(self, i: int) -> bool:
        """Whether the token ends an operand, so that an operator behind it has two."""
        token = self.tokens[i]
        if token.kind == "word":
            return token.text not in KEYWORDS | TYPES | QUALIFIERS
        if token.text == ")":
            opening = self._opening(i)
            inside = [t.text for t in self.tokens[opening + 1 : i] if t.kind not in ("space", "comment")]
            return not (inside and all(t in TYPES | QUALIFIERS | {"*"} for t in inside))
        return token.kind in ("number", "string") or token.text == "]"

    def _opening(self, i: int) -> int:
        depth = 0
        for j in range(i, -1, -1):
            depth += (self.text(j) == ")") - (self.text(j) == "(")
            if depth == 0:
                return j
        return 0

    def _number(self, i: int) -> None:
        text = self.tokens[i].text
        if not re.fullmatch(r"\d+[uUlL]*|\d*\.\d*(?:e-?\d+)?f?", text):
            return
        count = 8 if "." in text else 6
        number = self.number(i, "number", count)
        if number is not None:
            self.put(i, f"(unsigned(grader_mutant - {number}) < {count}u ? grader_edits::number({number}, {text}) : ", i, ")")

    def _word(self, i: int, before: int, after: int) -> None:
        name = self.tokens[i].text
        if name in ("threadIdx", "blockIdx", "blockDim", "gridDim") and self.text(after) == ".":
            self._builtin(i, after)
            return
        if self.text(before) in (".", "->", "::") or self.text(after) in ("::", ".", "->"):
            return
        if self.text(after) == "(":
            self._call(i, name, after)
            return
        address = self.text(before) == "&" and not self._is_value(self.next_(before, -1))
        if self.text(after) in ASSIGNS or self.text(after) in ("++", "--") or self.text(before) in ("++", "--") or address:
            return
        variable = next((v for v in reversed(self._visible(i)) if v.name == name), None)
        if variable is None or not variable.kind:
            return
        others = [(v.name, "variable") for v in self._visible(i) if v.kind == variable.kind and v.name != name and v.parameter is variable.parameter]
        others += [(variable.first, "first value")] if variable.first else []
        others += self._in_place_of(i, variable)
        self._pick(i, name, others, "*" in variable.kind)
        if variable.kind == "int" and not variable.parameter and self.function.gpu:
            self._swap(i, name)

    def _pick(self, i: int, name: str, others: list[tuple[str, str]], pointer: bool) -> None:
        others = list(dict.fromkeys(others))
        if not others:
            return
        start = None
        for _, kind in others:
            number = self.number(i, kind)
            start = number if start is None else start
        if start is not None and pointer:
            self.instead[i] = f"grader_edits::pick({start}, {name}, {', '.join(text for text, _ in others)})"
        elif start is not None:
            # No ternary of pointers before an index: g++ 12 compiles that wrongly here, and dies of it from -O1 on.
            chain = "".join(f"grader_mutant == {start + k} ? (decltype({name}))({text}) : " for k, (text, _) in enumerate(others))
            self.instead[i] = f"(unsigned(grader_mutant - {start}) < {len(others)}u ? ({chain}{name}) : {name})"

    def _swap(self, i: int, name: str) -> None:
        """In an index, the variable and another one in each other's place, where each stands there once."""
        bracket = self._bracket(i)
        words = [t.text for t in self.tokens[bracket[0] : bracket[1]] if t.kind == "word"] if bracket else []
        others = {v.name for v in self._visible(i) if v.kind == "int" and not v.parameter and v.name != name and words.count(v.name) == 1}
        for other in sorted(others) if words.count(name) == 1 else ():
            key = (bracket[0], *sorted((name, other)))
            if key not in self.twins:
                self.twins[key] = self.number(i, "swapped") or 0
            text = self.instead.get(i, name)
            self.instead[i] = f"(grader_mutant == {self.twins[key]} ? (decltype({name}))({other}) : {text})" if self.twins[key] else text

    def _builtin(self, i: int, dot: int) -> None:
        axis = self.next_(dot)
        if self.text(axis) not in ("x", "y", "z") or self.text(self.next_(axis)) in ASSIGNS:
            return
        name = self.tokens[i].text
        others = [f"{name}.{other}" for other in "xyz" if other != self.text(axis)]
        if name == "threadIdx":
            others.append(f"(blockIdx.{self.text(axis)} * blockDim.{self.text(axis)} + threadIdx.{self.text(axis)})")
        number = self.number(i, "variable", len(others))
        if number is not None:
            self.put(i, f"grader_edits::pick({number}, ", axis, f", {', '.join(others)})")

    def _visible(self, i: int) -> list[_Variable]:
        return [v for v in self.function.variables if v.at < i < v.end]

    def _in_place_of(self, i: int, variable: _Variable) -> list[tuple[str, str]]:
        """Expressions that the variable may stand for wrongly: with an outer index, with a parameter that nobody uses, rescaled."""
        found = []
        bracket = self._bracket(i)
        if variable.kind == "int" and bracket and variable.bound:
            inside = {t.text for t in self.tokens[bracket[0] : bracket[1]] if t.kind == "word"}
            for other in self._visible(i):
                if other.kind == "int" and not other.parameter and other.name not in inside and other.name != variable.name:
                    found.append((f"({other.name} * {variable.bound} + {variable.name})", "outer index"))
        if variable.kind == "float":
            used = [t.text for t in self.tokens[self.function.start : self.function.end] if t.kind == "word"]
            unused = [v.name for v in self.function.variables if v.parameter and v.kind == "float" and v.name not in used]
            found += [(f"({variable.name} {sign} {name})", "unused") for name in unused for sign in "+-*"]
            if self._assigned_to(i) == variable.name and {"expf", "exp"} & {*used}:
                floats = [v.name for v in self._visible(i) if v.kind == "float" and v.name != variable.name]
                found += [(f"({variable.name} * expf({a} - {b}))", "scale") for a in floats for b in floats if a != b]
        return found

    def _assigned_to(self, i: int) -> str:
        """The variable to which the statement around token i assigns."""
        start = i
        while start > 0 and self.text(start) not in (";", "{", "}"):
            start -= 1
        name = self.next_(start)
        return self.text(name) if self.text(self.next_(name)) == "=" else ""

    def _bracket(self, i: int) -> tuple[int, int] | None:
        """The [ ] around token i."""
        depth = 0
        for j in range(i, self.function.start, -1):
            text = self.text(j)
            depth += (text == "]") - (text == "[")
            if depth < 0:
                return j, closing_of(self.tokens, j)
            if text in (";", "{", "}"):
                return None
        return None

    def _call(self, i: int, name: str, opening: int) -> None:
        closing = closing_of(self.tokens, opening)
        if closing < 0 or not self.function.gpu or not self._free(i, closing):
            return
        argument = self.raw(opening + 1, closing)
        own = next((f for f in self.functions if f.name == name and f.gpu and not f.kernel), None)
        single = name in MATH or (own is not None and len([v for v in own.variables if v.parameter]) == 1 and own.variables[0].kind == "float")
        if single and (number := self.number(i, "call")) is not None:
            self.put(i, f"(grader_mutant == {number} ? ({argument}) : ", closing, ")")
        if name in MATH:
            self.instead[i] = f"grader_edits::known({self.tokens[i].line}, [](auto grader_v) {{ return {name}(grader_v); }})"
            floats = [v.name for v in self._visible(i) if v.kind == "float" and not v.parameter]
            choices = [f"(({argument}) {sign} {other})" for other in floats for sign in "-+*"]
            if choices and (number := self.number(i, "argument", len(choices))) is not None:
                text = "".join(f"grader_mutant == {number + k} ? {choice} : " for k, choice in enumerate(choices))
                self.put(self.next_(opening), f"{text}(", self.next_(closing, -1), ")")
        if name in EXCHANGED and (number := self.number(i, "function")) is not None:
            called = self.instead.get(i, f"[](auto... grader_v) {{ return {name}(grader_v...); }}")
            self.instead[i] = f"grader_edits::either({number}, {called}, [](auto... grader_v) {{ return {EXCHANGED[name]}(grader_v...); }})"

    def _regroup(self, i: int) -> None:
        """a + b * c as (a + b) * c, where that is all that stands right of an assignment."""
        end = self._to_semicolon(i, self.function.end)
        if not self.function.gpu or not self._free(i + 1, end):
            return
        terms = _split(self.tokens[i + 1 : end], "+")
        if len(terms) != 2:
            return
        factors = _split(terms[1], "*")
        if len(factors) < 2:
            return
        first, *rest = ("".join(t.text for t in part) for part in factors)
        pointers = {v.name for v in self._visible(i) if "*" in v.kind}
        if any(t.text in pointers and not re.search(rf"\b{t.text}\s*\[", "".join(t.text for t in terms[0])) for t in terms[0]):
            return
        if (number := self.number(i, "parentheses")) is None:
            return
        text = f"(({''.join(t.text for t in terms[0])}) + ({first})) * {' * '.join(rest)}"
        self.before.setdefault(self.next_(i), []).insert(0, f"grader_mutant == {number} ? ({text}) : (")
        self.after.setdefault(self.next_(end, -1), []).append(")")


def _split(tokens: list[Token], mark: str) -> list[list[Token]]:
    """Parts between the marks that stand in no bracket; one part if anything but + and * does."""
    parts, depth = [[]], 0
    for token in tokens:
        if token.kind == "mark" and len(token.text) == 1:
            depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0 and token.kind == "mark" and token.text in ("?", ":", "-", "/", ",", "%", "&&", "||", "<", ">"):
            return [tokens]
        if token.text == mark and depth == 0 and token.kind == "mark" and any(t.kind != "space" for t in parts[-1]):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _kind(words: list[str], pointer: bool) -> str:
    base = "int" if words and all(w in INTS for w in words) else "float" if words and words[-1] in FLOATS else ""
    return f"{words[-1]} *" if pointer and words else base


def _paired(tokens: list[Token]) -> list[Token]:
    """The tokens with operators of two or three characters as one."""
    made: list[Token] = []
    i = 0
    while i < len(tokens):
        for operator in PAIRED:
            part = tokens[i : i + len(operator)]
            if len(part) == len(operator) and all(t.kind == "mark" and t.text == c for t, c in zip(part, operator)):
                made.append(Token("mark", operator, tokens[i].line))
                i += len(operator)
                break
        else:
            made.append(tokens[i])
            i += 1
    return made
