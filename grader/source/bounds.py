"""Find the part of an index that no test keeps within its dimension, where other parts are tested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.source.cpp import Function, Text, closing, split
from grader.source.divergence import MOST_PLACES, find_assignments
from grader.source.place import Place, join_lines

ACCESS = re.compile(r"(?:reads|writes|updates atomically) (?:element (-?)\d+|\d+ bytes at once) of `(\w+)`")
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
CAST = re.compile(r"\(\s*(?:u?int(?:64|32)_t|size_t|long long|long|int|unsigned)\s*\)")
LONGEST = 500  # characters of an expression that is looked at: brackets may take the square of their number
GUARD = re.compile(r"\bif\s*\(")
LEAVES = re.compile(r"\s*\{?\s*(?:return\b[^;]*|continue|break)\s*;")
RELATION = re.compile(r"(?P<left>[^<>=!?]+?)\s*(?P<relation><=|>=|<|>)\s*(?P<right>[^<>=!?]+)")
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
SIZE = re.compile(r"(?:which has |\()(\d+) elements?\b")
CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(.*\)")
CONSTANT = re.compile(r"-?[\d.]+[fuUlL]*|[A-Z][A-Z0-9_]*")
SPARED = re.compile(r"%|\bmin\b|\bclamp\b")  # a value so made is within its dimension, as far as one can tell


@dataclass(frozen=True)
class Test:
    """A comparison that is true where the access runs. loop: it is the condition of a loop."""

    left: str
    relation: str
    right: str
    line: int
    loop: bool = False

    @property
    def text(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


def find_untested(message: str, code: Sequence[str], line: int) -> Place | None:
    """Return the test before an access out of bounds that lacks its other half, or another part of the index; None
    where there is no such test, or nothing is left to test.
    """
    access = ACCESS.search(message)
    text = Text("\n".join(code))
    function = text.around(line)
    if access is None or function is None:
        return None
    find = _explain_below if access[1] else _explain_above
    for index, at in _find_indices(text, line, access[2]):
        tests = list(_find_tests(text, function, at))
        if found := find(split_index(index), tests, find_assignments(text.body(function))):
            words, about = found
            return Place(words, (about or line,), True, (line,))
    return None


def find_returned_index(message: str, code: Sequence[str], line: int) -> Place | None:
    """Return the line from which a function of the file returns an index that is past the end, or its limit, which a
    test before the access compares it with; None where neither is such a value.
    """
    access, size = ACCESS.search(message), SIZE.search(message)
    text = Text("\n".join(code))
    function = text.around(line)
    if access is None or access[1] or size is None or function is None:
        return None
    for index, at in _find_indices(text, line, access[2]):
        if found := _find_return(text, function, _strip(index)):
            name, helper, by = found
            words = (
                f"The index{f', `{name}`,' if name else ''} is what `{helper}` returns in line {by}. It must be less "
                f"than {size[1]}, the number of elements of `{access[2]}`."
            )
            return Place(words, (by,), True, (line,))
        for test in _find_tests(text, function, at):
            limit = _find_return(text, function, test.right) if _same(test.left, _strip(index)) else None
            if limit and test.relation in ("<", "<="):
                words = (
                    f"`{test.text}` in line {test.line} is true here, and the index is past the end of `{access[2]}` "
                    f"all the same: `{limit[0] or test.right}`, which `{limit[1]}` returns in line {limit[2]}, is too "
                    "large."
                )
                return Place(words, (limit[2],), True, (line,))
    return None


def _find_return(text: Text, function: Function, value: str) -> tuple[str, str, int] | None:
    """Return the variable that a value is, or "", the function of the file that returns it, and in which line; None
    where it is no such value, or several lines may return it.
    """
    name = value if NAME.fullmatch(value) else ""
    if name:
        made = text.made(name, function)
        value = _strip(made[0][0]) if len(made) == 1 else ""
    called = CALLED.fullmatch(value)
    helper = text.functions.get(called[1]) if called and closing(value, called.end(1)) == len(value) - 1 else None
    if helper is None or helper.kernel or helper is function:
        return None
    returns = text.returns(helper)
    variable = [at for values, at in returns if not all(CONSTANT.fullmatch(one) for one in values)]
    chosen = [at for _, at in returns] if len(returns) == 1 else variable
    return (name, helper.name, text.line(chosen[0])) if len(chosen) == 1 else None


def _find_indices(text: Text, line: int, array: str) -> Iterator[tuple[str, int]]:
    """Yield each index with which a line accesses an array, and its offset."""
    begin = text.start(line, 0)
    end = text.code.find("\n", begin)
    for match in re.compile(rf"(?<![\w.]){array}\s*\[").finditer(text.code, begin, end if end >= 0 else len(text.code)):
        index = text.code[match.end() : closing(text.code, match.end() - 1)]
        if len(index) <= LONGEST:
            yield index, match.start()


# --- the parts of an index -------------------------------------------------------------------------------------------


def split_index(index: str) -> list[tuple[str, str]]:
    """Return the parts of an index to several dimensions, the last dimension's first, each with its size.

    `(n * C + c) * P + p` has p of P, c of C, and n, whose size it does not show, which is then empty.
    """
    found: list[tuple[str, str]] = []
    rest = _strip(index)
    while True:
        terms = _split_terms(rest)
        products = [one for one in terms if len(_split_factors(one)) > 1]
        others = " ".join(one for one in terms if one not in products).removeprefix("+").strip()
        if not products or not others:
            return [*found, (rest, "")]
        factors = sorted(map(_split_factors, products), key=len)
        known: list[str] = []
        for carrier, *sizes in factors:
            new = sizes[: len(sizes) - len(known)]
            if sizes[len(new) :] != known or not new:
                return []  # in another form
            found.append((others, " * ".join(new)))
            others, known = _strip(carrier), sizes
        rest = others


def _strip(expression: str) -> str:
    """Return an expression without casts, and without brackets around the whole of it."""
    if len(expression) > LONGEST:
        return expression
    expression = " ".join(CAST.sub("", expression).split())
    while expression.startswith("(") and closing(expression, 0) == len(expression) - 1:
        expression = expression[1:-1].strip()
    return expression


def _split_terms(expression: str) -> list[str]:
    """Return the terms of a sum, each but the first with its sign."""
    terms, depth, begun = [], 0, 0
    for at, letter in enumerate(expression):
        depth += (letter in "([") - (letter in ")]")
        if letter in "+-" and depth == 0 and at > begun:
            terms.append(expression[begun:at].strip())
            begun = at
    return [*terms, expression[begun:].strip()]


def _split_factors(term: str) -> list[str]:
    """Return the factors of a product, numbers and constants last; the term alone if it has another operator."""
    factors = [part.strip() for part, _ in split(term.removeprefix("+").strip(), "*")]
    if not all(re.fullmatch(r"[\w.]+|\(.*\)", part) for part in factors):
        return [term]
    return sorted(factors, key=lambda part: re.fullmatch(r"\d+|[A-Z][A-Z\d]+_?\w*", part) is not None)


# --- what is tested --------------------------------------------------------------------------------------------------


def _find_tests(text: Text, function: Function, at: int) -> Iterator[Test]:
    """Yield the comparisons that are true at an offset: of what encloses it, and of what leaves before it."""
    heads = text.heads(function, at)
    for guard in list(GUARD.finditer(text.code, function.start, at))[-MOST_PLACES:]:
        end = closing(text.code, guard.end() - 1)
        if LEAVES.match(text.code, end + 1) and set(text.heads(function, guard.start())) <= set(heads):
            for part in re.split(r"\|\|", text.code[guard.end() : end]):
                if (test := _read_test(part, text.line(guard.start()))) and "&&" not in part:
                    yield Test(test.left, OPPOSITE[test.relation], test.right, test.line)
    for begin, end in heads:
        statement = text.code[begin:end]
        for head in re.finditer(r"\b(if|while|for)\s*\(", statement):
            last = closing(statement, head.end() - 1)
            inside = statement[head.end() : last]
            condition = inside.split(";")[1] if head[1] == "for" and inside.count(";") >= 2 else inside
            if "else" not in statement[: head.start()]:
                line = text.line(begin + head.start())
                yield from _read_all(text, function, condition, line, head[1] != "if")
    begin = max(text.code.rfind(mark, function.start, at) for mark in ";{}")
    before = text.code[begin + 1 : at]
    for choice in re.finditer(r"\?", before):
        if ":" not in re.sub(r"::", "", before[choice.end() :]):
            condition = re.split(r"(?<![<>=!])=(?!=)|\breturn\b|,|\(\s*(?=[^()]*$)", before[: choice.start()])[-1]
            yield from _read_all(text, function, condition, text.line(at), False)


def _read_all(text: Text, function: Function, condition: str, line: int, loop: bool) -> Iterator[Test]:
    """Yield the comparisons of a condition that is true; of a variable, those of its value."""
    if "||" in condition:
        return
    for part in condition.split("&&"):
        if test := _read_test(part, line, loop):
            yield test
        elif name := re.fullmatch(r"\s*(\w+)\s*", part):
            for value, at in text.made(name[1], function)[:1]:
                if "||" not in value:
                    made = (_read_test(one, text.line(at)) for one in value.split("&&"))
                    yield from (test for test in made if test)


def _read_test(part: str, line: int, loop: bool = False) -> Test | None:
    part = _strip(part)
    found = RELATION.fullmatch(part)
    if found is None or part.count("(") != part.count(")"):
        return None
    left, right = _strip(found["left"]), _strip(found["right"])
    return Test(left, found["relation"], right, line, loop)


# --- what is not tested ----------------------------------------------------------------------------------------------


def _limits(test: Test, term: str, above: bool) -> bool:
    """Return whether a test keeps a term from being too large, or below 0 where `above` is false."""
    sides = ((test.left, test.relation), (test.right, TURNED[test.relation]))
    return any(_same(side, term) and relation in (("<", "<=") if above else (">", ">=")) for side, relation in sides)


def _same(one: str, other: str) -> bool:
    return one.replace(" ", "") == other.replace(" ", "")


def _explain_above(
    parts: list[tuple[str, str]], tests: list[Test], assigned: list[tuple[str, str]]
) -> tuple[str, int] | None:
    """Return why an index can be past the end, and the line to mark, or 0; None where the text does not show it."""
    made = dict(assigned)
    own = [test for test in tests if not test.loop]
    open_ = [
        (term, size)
        for term, size in reversed(parts)
        if not re.fullmatch(r"\d+", term)
        and not any(_limits(test, term, True) for test in tests)
        and not SPARED.search(made.get(term, term))
    ]
    one_side = [
        (term, size, test)
        for term, size in open_
        for test in own
        if size and _limits(test, term, False) and re.fullmatch(r"-?\d+", test.right)
    ]
    if one_side:
        terms = list(dict.fromkeys(term for term, _, _ in one_side))
        are, added = "is" if len(terms) == 1 else "are", list(dict.fromkeys(f"{t} >= {s}" for t, s, _ in one_side))
        lines = sorted({test.line for _, _, test in one_side})
        tell = "tests" if len(lines) == 1 else "test"
        return (
            f"{join_lines(lines).capitalize()} {tell} only whether {_name(terms)} {are} below 0. "
            f"{'It' if len(terms) == 1 else 'They'} can also be too large: leave out the access where "
            f"`{' || '.join(added)}`, too."
        ), lines[-1]
    for term, size in open_:
        if part := _find_part(term, size, own, "+"):
            return _explain_part(term, part)
    beside = [test for test in own if any(_limits(test, term, True) for term, _ in parts)]
    if len(open_) == 1 and beside and open_[0][1]:
        term, size = open_[0]
        return (
            f"Line {beside[-1].line} tests `{beside[-1].text}`, but not `{term}`, which must be less than `{size}` as "
            f"well. Test `{term} < {size}`, too."
        ), beside[-1].line
    for term, size in open_:
        if part := _find_part(term, size, tests, "+"):
            return _explain_part(term, part)
    return None


def _explain_below(
    parts: list[tuple[str, str]], tests: list[Test], assigned: list[tuple[str, str]]
) -> tuple[str, int] | None:
    """Return why an index can be before the start, and the line to mark, or 0; None where the text does not show it."""
    made = dict(assigned)
    own = [test for test in tests if not test.loop]
    open_ = [
        term
        for term, _ in reversed(parts)
        if "-" in made.get(term, term) and not any(_limits(test, term, False) for test in tests)
    ]
    for term in open_:
        if part := _find_part(term, "", own, "-") or _find_part(term, "", tests, "-"):
            return _explain_part(term, part)
    tested = [test for test in own if any(_limits(test, term, True) for term, _ in parts)]
    if not open_ or not tested:
        return None
    above = [term for term in open_ if any(_limits(test, term, True) for test in own)] or open_[:1]
    are, it = ("is", "It") if len(above) == 1 else ("are", "They")
    added = " || ".join(f"{term} < 0" for term in above)
    return (
        f"Line {tested[-1].line} tests `{tested[-1].text}`, but not whether {_name(above)} {are} below 0. {it} can be: "
        f"leave out the access where `{added}`, too."
    ), tested[-1].line


def _explain_part(term: str, part: Test) -> tuple[str, int]:
    """Return that a test is not of the whole term, and its line; 0 for the condition of a loop, which may be right."""
    what = f"The loop in line {part.line} runs while" if part.loop else f"Line {part.line} tests"
    either = ", or change the index" if part.loop else ""  # the loop may be right
    words = f"{what} `{part.text}`, but the index is `{term}`. Test `{term} {part.relation} {part.right}`{either}."
    return words, 0 if part.loop else part.line


def _find_part(term: str, size: str, tests: list[Test], sign: str) -> Test | None:
    """Return a test of the first part of a term alone, such as of i in i + 1; of i + k only with the size of both."""
    terms = _split_terms(term)
    if len(terms) < 2 or not all(one.startswith(sign) for one in terms[1:]):
        return None
    offsets = [one.lstrip("+- ") for one in terms[1:]]
    for test in reversed(tests):
        is_limit = test.relation in (("<", "<=") if sign == "+" else (">", ">="))
        fits = all(one.isdigit() for one in offsets) or (size and _same(test.right, size))
        if is_limit and fits and _same(test.left, terms[0]) and not re.search(r"[-+]", test.right):
            return test
    return None


def _name(terms: list[str]) -> str:
    return " and ".join(f"`{term}`" for term in terms)
