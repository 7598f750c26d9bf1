"""Has the glossary each linked term, in alphabetical order, and does the lesson that it names contain the term?"""

import re
from pathlib import Path

import nbformat
import pytest

LESSONS = Path(__file__).parent.parent.parent / "lessons"
FILES = {int(path.name[:2]): path for path in sorted(LESSONS.glob("[0-9]*.ipynb"))}
GLOSSARY = (LESSONS / "GLOSSARY.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### (.+)\n\n(.+)\n", GLOSSARY, re.MULTILINE))


def text(path):
    return "\n\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")


def make_anchor(heading):
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_terms_are_in_alphabetical_order():
    """Does each heading have an entry of one paragraph, in alphabetical order and without HTML?"""
    terms = re.findall(r"^### (.+)$", GLOSSARY, re.MULTILINE)
    assert len(terms) >= 40 and terms == list(ENTRIES) == sorted(ENTRIES, key=str.casefold)
    assert not re.search(r"</?[a-z]+\b[^>]*>", re.sub(r"`[^`]+`", "", GLOSSARY))


@pytest.mark.parametrize("path", FILES.values(), ids=lambda path: path.stem)
def test_links_have_headings(path):
    """Does every link into the glossary have its heading, and does no lesson link a term twice?"""
    linked = re.findall(r"\]\(GLOSSARY\.md#([^)]*)\)", text(path))
    assert {*linked} <= {make_anchor(term) for term in ENTRIES}
    assert len(linked) == len({*linked})


@pytest.mark.parametrize("term", ENTRIES)
def test_lessons_contain_their_terms(term):
    """Does the lesson that an entry names contain the term as a word, or as the beginning of one?"""
    named = re.search(r"\. Lesson (\d+)\.$", ENTRIES[term])
    assert named, "the entry names no lesson"
    assert re.search(rf"\b{re.escape(term)}", text(FILES[int(named[1])]), re.IGNORECASE)
