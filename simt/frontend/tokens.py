"""Split C++ source into tokens, and find brackets, commas and directives in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|\\\r?\n)
    | (?P<comment>//(?:[^\\\n]|\\.|\\\n)*|/\*.*?\*/)
    | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
    | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9a-zA-Z]|[0-9a-zA-Z_.])*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass
class Token:
    """A piece of source text; `line` counts from 1."""

    kind: str
    text: str
    line: int


def tokenize(source: str) -> list[Token]:
    """Split C++ source into tokens. Their texts, joined, are the source."""
    tokens, line = [], 1
    for match in _TOKEN.finditer(source):
        text = match.group()
        kind = match.lastgroup if match.lastgroup not in ("tag", None) else "string"
        tokens.append(Token(kind, text, line))
        line += text.count("\n")
    return tokens


def join_launch_marks(tokens: list[Token]) -> list[Token]:
    """Return the tokens with `<< <`, `< <<`, `>> >` and `> >>` of launches as one mark, and the space behind it.

    Formatters that do not know CUDA write launches this way, and nvcc accepts it. The tokens of a line keep their
    length. `operator<< <T>` and template arguments such as `A<B<C<int> > >` stay as they are.
    """
    joined: list[Token] = []
    opened = 0  # launches whose end is still to come
    i = 0
    while i < len(tokens):
        length = _measure_mark(tokens, i, opened > 0)
        if not length:
            opened += (tokens[i].text == "<<<") - (tokens[i].text == ">>>")
            joined.append(tokens[i])
            i += 1
            continue
        part = tokens[i : i + length]
        opened += 1 if part[0].text == "<" else -1
        spaces = "".join(t.text for t in part if t.kind == "space")
        joined += [Token("mark", part[0].text * 3, part[0].line)]
        joined += [Token("space", spaces, part[0].line)] if spaces else []
        i += length
    return joined


def _measure_mark(tokens: list[Token], i: int, opened: bool) -> int:
    """Return how many tokens at i, with spaces between them, are the <<< or >>> of a launch; 0: they are none."""
    mark = tokens[i].text
    if tokens[i].kind != "mark" or mark not in ("<", ">") or (mark == ">" and not opened):
        return 0
    marks, spaces, j = 0, 0, i
    while marks < 3 and j < len(tokens):
        if tokens[j].text == mark:
            marks += 1
        elif tokens[j].kind == "space" and "\n" not in tokens[j].text:
            spaces += 1
        else:
            break
        j += 1
    if marks < 3 or spaces != 1:
        return 0
    if mark == ">":  # otherwise the end of template arguments
        return j - i if get_text(tokens, find_next(tokens, j - 1)) == "(" else 0
    return 0 if get_text(tokens, find_next(tokens, i, -1)) == "operator" else j - i


def find_next(tokens: list[Token], i: int, step: int = 1) -> int:
    """Return the index of the next token that is neither space nor comment, or -1."""
    i += step
    while 0 <= i < len(tokens):
        if tokens[i].kind not in ("space", "comment"):
            return i
        i += step
    return -1


def get_text(tokens: list[Token], i: int) -> str:
    """Return the text of the token at i, or "" if there is none."""
    return tokens[i].text if 0 <= i < len(tokens) else ""


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def find_closing(tokens: list[Token], i: int) -> int:
    """Return the index of the bracket that closes the one at i, or -1."""
    opening, depth = tokens[i].text, 0
    closing = _CLOSING[opening]
    for j in range(i, len(tokens)):
        if tokens[j].text == opening and tokens[j].kind == "mark":
            depth += 1
        elif tokens[j].text == closing and tokens[j].kind == "mark":
            depth -= 1
            if depth == 0:
                return j
    return -1


def find_opening(tokens: list[Token], i: int, opening: str, closing: str) -> int:
    """Return the index of the bracket that opens the one at i, looking backwards, or -1."""
    depth = 0
    for j in range(i, -1, -1):
        if tokens[j].kind != "mark":
            continue
        depth += (tokens[j].text == closing) - (tokens[j].text == opening)
        if depth == 0:
            return j
    return -1


def find_angle_start(tokens: list[Token], i: int) -> int:
    """Return the index of the < that opens the template arguments that end at i with > or >>>, or -1."""
    depth, j = 0, i
    while j >= 0:
        text = tokens[j].text
        if text in (">", ">>>"):
            depth += len(text)
        elif text == "<":
            depth -= 1
            if depth == 0:
                return j
        elif text in (")", "]"):  # a < in brackets may be a comparison
            j = find_opening(tokens, j, {")": "(", "]": "["}[text], text)
        elif text in (";", "{", "}"):
            return -1
        j -= 1
    return -1


def find_angle_end(tokens: list[Token], i: int) -> int:
    """Return the index of the > that closes the < at i in a template head or argument list, or -1."""
    depth = parens = 0
    for j in range(i, len(tokens)):
        text = tokens[j].text
        if text == "(":
            parens += 1
        elif text == ")":
            parens -= 1
            if parens < 0:  # a comparison in parentheses
                return -1
        elif parens:
            continue
        elif text == "<":
            depth += 1
        elif text in (">", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return j
        elif text in (";", "{"):
            return -1
    return -1


def split_at_commas(tokens: list[Token]) -> list[list[Token]]:
    """Split at commas outside brackets. An empty list has no parts."""
    parts, depth, angles = [[]], 0, 0
    for token in tokens:
        if token.kind == "mark":
            if token.text in ("(", "[", "{"):
                depth += 1
            elif token.text in (")", "]", "}"):
                depth -= 1
            elif token.text == "<" and depth == 0:
                angles += 1
            elif token.text in (">", ">>>") and depth == 0:
                angles -= len(token.text)
            elif token.text == "," and depth == 0 and angles <= 0:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts if any(t.kind not in ("space", "comment") for p in parts for t in p) else []


def keep_newlines(tokens: list[Token]) -> str:
    """Return the newlines in the tokens, each with the backslash that continues a macro."""
    return "".join("".join(re.findall(r"\\?\r?\n", t.text)) for t in tokens)


def blank(tokens: list[Token], start: int, end: int) -> None:
    """Remove the text of the tokens [start, end) but keep their newlines."""
    for token in tokens[start:end]:
        token.kind, token.text = "space", keep_newlines([token])


def find_directives(tokens: list[Token]) -> dict[int, int]:
    """Return, for each token in a preprocessor line, its index -> the index of the line's #."""
    inside, start = {}, -1
    for i, token in enumerate(tokens):
        if start >= 0 and token.kind == "space" and token.text[:1] != "\\" and "\n" in token.text:
            start = -1
        if start < 0 and token.text == "#" and token.kind == "mark":
            start = i
        if start >= 0:
            inside[i] = start
    return inside


def flatten(tokens: list[Token]) -> str:
    """Return the text of the tokens on one line, without comments."""
    return " ".join("".join(" " if t.kind == "comment" or t.text[:1] == "\\" else t.text for t in tokens).split())


def find_declaration_end(tokens: list[Token], i: int) -> int:
    """Return the index of the semicolon that ends the declaration at i, or -1."""
    depth = 0
    for j in range(i, len(tokens)):
        text = tokens[j].text
        if tokens[j].kind == "mark":
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if text == ";" and depth == 0:
                return j
            if depth < 0:
                return -1
    return -1


def find_declared_name(tokens: list[Token]) -> str:
    """Return the name that one part of a declaration declares, or "" if there is none."""
    name = ""
    for token in take_outside_brackets(tokens):
        if token.kind == "word" and token.text not in ("alignas", "__align__"):
            name = token.text
    return name


def take_outside_brackets(tokens: list[Token]) -> list[Token]:
    """Return the tokens outside brackets."""
    kept, depth = [], 0
    for token in tokens:
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif depth == 0:
            kept.append(token)
    return kept
