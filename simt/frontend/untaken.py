"""Find and blank the lines of a source that the preprocessor leaves out, such as those between #ifdef and #endif."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from simt.frontend.source import Source
from simt.frontend.tokens import find_next, get_text, keep_newlines

CONDITIONALS = ("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif")
_MARK = "simt_taken_{}_{}"


def find_parts(source: Source) -> list[int]:
    """Return, for each token, the line of the last #if, #else, #endif, … before it, or 0 if there is none.

    The tokens between two such directives are compiled together or left out together.
    """
    parts, part = [], 0
    for i, token in enumerate(source.tokens):
        if source.directives.get(i) == i and get_text(source.tokens, find_next(source.tokens, i)) in CONDITIONALS:
            part = token.line
        parts.append(part)
    return parts


def has_conditional_line(source: Source, lines: AbstractSet[int]) -> bool:
    """Return whether one of the lines follows an #if, #ifdef or #ifndef."""
    return any(part and t.line in lines for part, t in zip(find_parts(source), source.tokens))


def make_probe(source: Source, number: int) -> str:
    """Return the source's preprocessor lines, with a mark behind each #if, #else, … that only the preprocessor keeps.

    number: of the source, for its marks. The text is for the preprocessor alone.
    """
    parts, out, last = find_parts(source), [], 0
    for i, (token, part) in enumerate(zip(source.tokens, parts)):
        if i in source.directives:
            out.append(token.text)
            continue
        breaks = keep_newlines([token]).replace("\\", "")
        if part != last and breaks:
            breaks, last = f"\n{_MARK.format(number, part)}{breaks}", part
        out.append(breaks)
    return "".join(out) + "\n"


def blank_untaken(source: Source, number: int, preprocessed: str) -> Source:
    """Return the source with blank lines where its probe's mark is not in the preprocessed text."""
    marks, kept = set(preprocessed.split()), []
    for i, (token, part) in enumerate(zip(source.tokens, find_parts(source))):
        start = source.directives.get(i, -1)
        conditional = start >= 0 and get_text(source.tokens, find_next(source.tokens, start)) in CONDITIONALS
        taken = not part or conditional or _MARK.format(number, part) in marks
        kept.append(token.text if taken else keep_newlines([token]).replace("\\", ""))
    return Source("".join(kept), source.label)
