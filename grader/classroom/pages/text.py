"""Turn text that anyone may have written into HTML in which it stays text."""

from __future__ import annotations

import re
import unicodedata
import urllib.parse

from markupsafe import Markup, escape

from grader.reports.terminal import clean

JOINERS = "\u200c\u200d"  # which some languages need in words
PLAIN = re.compile(r"[\t\n -~]*")
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # categories of characters that are not seen, or that turn text around
CODE = re.compile(r"`([^`\n]+)`")
KEPT_IN_URL = " !$()*+,/:;=?@[]|~"


def show_hidden(text: object, keep: str = "") -> Markup:
    """Return text as HTML, in which each character that is not seen, or that turns text around, is its escape.

    keep: such characters that stay.
    """
    words = str(text)
    if PLAIN.fullmatch(words):
        return escape(words)
    return Markup("").join(
        Markup('<span class="hidden">{}</span>').format(_spell(c)) if _is_hidden(c) and c not in keep else c
        for c in words
    )


def show_name(text: object) -> Markup:
    """Return a name as HTML; its direction leaves the text around it alone."""
    return Markup("<bdi>{}</bdi>").format(show_hidden(text, JOINERS))


def show_words(text: object) -> Markup:
    """Return a report's sentence as HTML, with parts in backquotes as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(show_hidden(text))))


def _is_hidden(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in HIDDEN


def _spell(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def make_slug(text: str) -> str:
    """Return a text as a part of a file's name: small letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:40].strip("-") or "student"


def make_address(svg: str) -> str:
    """Return a picture as an address that holds all of it. In an <img> nothing in it can run."""
    drawn = svg if PLAIN.fullmatch(svg) else clean(svg)  # XML has no control characters
    return f"data:image/svg+xml,{urllib.parse.quote(drawn, safe=KEPT_IN_URL)}"


def percent(share: float | None) -> str:
    """Return a share as a page shows it."""
    return "–" if share is None else f"{100 * share:.1f} %"
