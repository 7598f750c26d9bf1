"""Replace a program's own names of CUDA's qualifiers, as in `#define SHARED __shared__`, by what they stand for, and so
its macros for variables in shared memory, as in `#define TILE(T, n) __shared__ T tile[n]`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from simt.frontend.tokens import Token, find_closing, find_directives, find_next, flatten, get_text, split_at_commas

SHARED = "__shared__"
QUALIFIERS = frozenset((SHARED, "__global__", "__constant__"))
DEEPEST = 8  # macros in macros
COMPLEX = frozenset(("{", "#", "##"))  # in a macro with parameters: it is a whole kernel, or makes names


@dataclass
class Macro:
    """What a macro stands for. parameters: their names; None for one without parentheses. text: its tokens' indices."""

    parameters: list[str] | None
    text: range
    body: list[Token]


def expand_qualifier_macros(tokens: list[Token]) -> list[Token]:
    """Return the tokens with each use of such a macro replaced by its text, on the same line.

    A macro with parameters is replaced where it declares a variable in shared memory and does no more than that. One
    that is defined twice stays as it is: which definition holds is for the preprocessor to tell. The passes that follow
    look for the qualifiers themselves.
    """
    for _ in range(DEEPEST):
        expanded = _expand_once(tokens)
        if [t.text for t in expanded] == [t.text for t in tokens]:
            break
        tokens = expanded
    return tokens


def _expand_once(tokens: list[Token]) -> list[Token]:
    """Replace the macros' uses once; the replacement may contain further uses."""
    directives = find_directives(tokens)
    meanings = _find_macros(tokens, directives)
    if not meanings:
        return tokens
    # The text of a macro with parameters would be taken for a declaration, and nothing uses it any more.
    unused = {i for macro in meanings.values() if macro.parameters is not None for i in macro.text}
    expanded: list[Token] = []
    end = -1
    for i, token in enumerate(tokens):
        macro = meanings.get(token.text) if token.kind == "word" else None
        if i <= end or i in unused:
            expanded += [token] if "\n" in token.text else []
            continue
        use = _find_use_end(tokens, i, macro, directives) if macro else -1
        if macro is None or use < 0:
            expanded.append(token)
            continue
        end = use
        given = split_at_commas(tokens[find_next(tokens, i) + 1 : end]) if macro.parameters else []
        expanded += _substitute(macro, given, token.line)
    return expanded


def _find_macros(tokens: list[Token], directives: dict[int, int]) -> dict[str, Macro]:
    """Return the macros to be replaced, by name."""
    defined: Counter[str] = Counter()
    found: dict[str, Macro] = {}
    for i, begins in directives.items():
        if tokens[i].text != "define" or find_next(tokens, begins) != i:
            continue
        name = find_next(tokens, i)
        defined[get_text(tokens, name)] += 1
        parameters, first = None, name + 1
        if get_text(tokens, first) == "(":
            closing = find_closing(tokens, first)
            parameters = [t.text for t in tokens[first:closing] if t.kind == "word"]
            parameters += ["..."] if "..." in flatten(tokens[first:closing]).replace(" ", "") else []
            first = closing + 1
        end = next(j for j in itertools.count(first) if directives.get(j) != begins)
        body = [t for t in tokens[first:end] if t.kind != "comment" and "\n" not in t.text]
        words = {t.text for t in body}
        if (SHARED in words and not COMPLEX & words) if parameters is not None else QUALIFIERS & words:
            found[get_text(tokens, name)] = Macro(parameters, range(first, end), body)
    return {name: macro for name, macro in found.items() if defined[name] == 1}


def _find_use_end(tokens: list[Token], i: int, macro: Macro, directives: dict[int, int]) -> int:
    """Return the index of the last token of a macro's use at i; -1 if it is none that is replaced."""
    if macro.parameters is None:
        return -1 if i in directives else i
    opening = find_next(tokens, i)
    is_defined_here = i in directives and directives[i] == directives.get(macro.text.start - 1)
    return find_closing(tokens, opening) if get_text(tokens, opening) == "(" and not is_defined_here else -1


def _substitute(macro: Macro, given: list[list[Token]], line: int) -> list[Token]:
    """Return what a use of a macro becomes. given: its arguments."""
    parameters = macro.parameters or []
    values = dict(zip(parameters, given))
    if "..." in parameters:
        rest = [[Token("mark", ",", line), *part] for part in given[len(parameters) - 1 :]]
        values["__VA_ARGS__"] = [t for part in rest for t in part][1:]
    made = [u for t in macro.body for u in (values.get(t.text, [t]) if t.kind == "word" else [t])]
    return [Token(t.kind, t.text, line) for t in made if "\n" not in t.text and t.kind != "comment"]
