"""Find sums that a kernel computes and never uses: what it stores lacks them."""

from __future__ import annotations

import dataclasses
import re

from grader.diagnosis.backward_kernels import backward_lines
from grader.source.cpp import Function, Text, split
from grader.source.places import Place
from grader.verdict import Reason, Stage, StageName

WRONG = {Reason.wrong_values, Reason.wrong_gradient, Reason.constant_output}
WHOLE = {"int", "unsigned", "long", "short", "size_t", "int64_t", "int32_t", "uint32_t", "uint64_t", "bool", "char"}
DECLARES = re.compile(
    r"\s*((?:(?:const|static|volatile|signed)\s+)*(?!return\b|else\b|goto\b|case\b)[A-Za-z_][\w:]*(?:\s*<[^;=]*>)?)\s+(\w+)\s*(=(?!=)|$)"
)
SETS = re.compile(r"\s*([A-Za-z_]\w*)\s*((?:[-+*/%&|^]|<<|>>)?=(?!=))")
HEADS = re.compile(r"(?<!\w)(?:for|while|if|switch)\b\s*(?:constexpr\s*)?\(")
WORD = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")


@dataclasses.dataclass
class _Part:
    """A piece of a statement.

    target: the variable that it sets; "" if it does more than that. reads: the names in it. at: its place in the text.
    update: whether the new value depends on the old one.
    """

    target: str
    reads: set[str]
    at: int
    update: bool = False


def of(stage: Stage, source: str) -> Place | None:
    """Return the store that leaves out a sum of its kernel; None if there is no such sum, or not exactly one store."""
    if stage.reason not in WRONG:
        return None
    text, behind = Text(source), backward_lines(source)
    unread = None
    for kernel in text.functions.values():
        back = text.line(kernel.start) in behind
        if (
            not kernel.kernel
            or (stage.name is StageName.gradient and behind and not back)
            or (stage.name is StageName.correct and back)
        ):
            continue
        unread = unread or _find_unread(text, kernel)
        sums = unused(text, kernel)
        last = max((line for lines in sums.values() for line in lines), default=0)
        stores = sorted(
            {
                line
                for kind, name in kernel.parameters
                if "*" in kind and "const" not in kind
                for line in text.stores(kernel, name)
            }
        )
        if sums and len(stores) == 1 and stores[0] > last:
            return Place(
                _describe_unused(sums, stores[0]), tuple(stores), beside=tuple(lines[-1] for lines in sums.values())
            )
    return unread


def _find_unread(text: Text, kernel: Function) -> Place | None:
    """Return the line that fills a shared array which its kernel never reads, if there is just one such array."""
    found = []
    for declared in text.find(r"__shared__\s[^;]*", kernel):
        for name in re.findall(r"([A-Za-z_]\w*)\s*\[", re.sub(r"\[[^\]]*\]", "[", declared[0])):
            every = {
                match.start() for match in text.find(rf"(?<![\w.>]){name}\b", kernel) if match.start() > declared.end()
            }
            stored = {match.start() for match in text.find(rf"(?<![\w.>]){name}\s*(?:\[[^\[\]]*\]\s*)+=(?!=)", kernel)}
            if every and every == stored:
                found.append((name, text.line(min(every))))
    if len(found) != 1:
        return None
    (name, line), *_ = found
    words = f"Line {line} fills `{name}`, but `{kernel.name}` never reads it. Find the formula that needs `{name}`."
    return Place(words, (), beside=(line,))


def _describe_unused(sums: dict[str, list[int]], store: int) -> str:
    names = [f"`{name}`" for name in sums]
    lines = sorted({lines[-1] for lines in sums.values()})
    named, where = _join(names), _join([f"line {line}" for line in lines])
    are, them = ("are", "them") if len(names) > 1 else ("is", "it")
    return f"{named} {are} computed in {where} and never used. Line {store} stores a value without {them}."


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def unused(text: Text, kernel: Function) -> dict[str, list[int]]:
    """Return the kernel's variables that are computed in several steps and never used, with the lines that set them.

    Integers are left out: an unused count is not a missing term.
    """
    kinds, parts = _parts(text.code, kernel.start, kernel.end)
    dead = set(kinds)
    while gone := {name for part in parts if part.target not in dead for name in part.reads & dead}:
        dead -= gone
    found: dict[str, list[int]] = {}
    for part in parts:
        if part.target in dead and not kinds[part.target] & WHOLE:
            found.setdefault(part.target, []).append(text.line(part.at))
    updated = {part.target for part in parts if part.update}
    return {name: lines for name, lines in found.items() if name in updated}


def _parts(code: str, start: int, end: int) -> tuple[dict[str, set[str]], list[_Part]]:
    """Return the plain local variables of a body with the words of their types, and its statements piece by piece."""
    kinds: dict[str, set[str]] = {}
    parts: list[_Part] = []
    shaded = re.sub(r"^[ \t]*#[^\n]*", lambda match: " " * len(match[0]), code[start:end], flags=re.MULTILINE)
    for statement, at in _statements(shaded):
        kind: set[str] | None = None
        for number, (piece, offset) in enumerate(split(statement)):
            if number == 0 and (declared := DECLARES.match(piece)):
                kind = set(re.findall(r"\w+", declared[1]))
                offset, piece = offset + declared.start(2), piece[declared.start(2) :]
            bare = re.fullmatch(r"\s*(\w+)\s*", piece) if kind is not None else None
            if kind is not None and (named := bare or SETS.match(piece)):
                kinds.setdefault(named[1], set()).update(kind)
            if not bare:
                parts += _sets(piece, start + at + offset)
    return kinds, parts


def _sets(piece: str, at: int) -> list[_Part]:
    """Return `a = b = e` as one piece that sets a and one that sets b; anything else as a piece without a target."""
    targets, rest, update, at = [], piece, False, at + len(piece) - len(piece.lstrip())
    while match := SETS.match(rest):
        targets.append(match[1])
        update |= match[2] != "="
        rest = rest[match.end() :]
    reads = set(WORD.findall(rest))
    further = re.search(r"\+\+|--|(?<![=!<>])=(?!=)", rest) is not None
    if not targets or further:
        return [_Part("", reads | set(targets), at)]
    return [_Part(name, reads, at, update or name in reads) for name in targets]


def _statements(body: str) -> list[tuple[str, int]]:
    """Return the statements of a body and where each begins; heads of loops and conditions are separate ones."""
    found, begun, depth, at = [], 0, 0, 0
    while at < len(body):
        letter = body[at]
        depth += (letter in "([") - (letter in ")]")
        head = HEADS.match(body, at) if depth == 0 else None
        if head:
            end = head.end()
            deep = 1
            while end < len(body) and deep:
                deep += (body[end] == "(") - (body[end] == ")")
                end += 1
            # in parentheses, so that no part of it looks like an assignment
            found.append((f"({body[head.end() : end - 1].replace(';', ' ')})", at))
            begun = at = end
            continue
        if letter in ";{}" and depth == 0:
            found.append((body[begun:at], begun))
            begun = at + 1
        at += 1
    return [(re.sub(r"^(\s*)else\b", r"\1    ", text), at) for text, at in found if text.strip()]
