"""Does docs/words.py count the dialect words in docstrings, comments, strings and identifiers, and nothing else?"""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _load():
    """Return docs/words.py as a module."""
    spec = importlib.util.spec_from_file_location("docs_words", ROOT / "docs" / "words.py")
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = _load()


def found(path, content):
    """Return the (line, word) of each use in a file."""
    return [(use.line, use.word) for use in words.count({path: content}).uses]


PYTHON = '''"""What is told,
and what stands here."""
# The arrow leads to a room: the verb is not counted. It goes
# on with the next one.
told_better = "a\\ntruth"  # the noun: a lead
class Lead: ...
beside(f"{untold} said")
'''
CUDA = """// Made
// anew by whoever
/* in
   turns */ int asked = 0;  // while (1)
const char *text = "lanes at \\"work";
"""


@pytest.mark.parametrize(
    "path, content, expected",
    [
        (
            "a.py",
            PYTHON,
            [
                (1, "told"),
                (2, "stands"),
                (3, "goes on with"),
                (5, "told better"),
                (5, "truth"),
                (5, "a lead"),
                (6, "lead"),
                (7, "beside"),
                (7, "said"),
            ],
        ),
        ("a.cuh", CUDA, [(1, "made anew"), (2, "whoever"), (3, "in turns"), (4, "asked"), (5, "lanes at work")]),
        ("wrong.py", "# mended\nx = (\n", [(1, "mended")]),
        ("none.py", "if True:\n    untold = 1  # a side\n", []),
    ],
)
def test_finds_the_planted_words(path, content, expected):
    """Is each planted word found at its line, once, and no part of another word?"""
    assert found(path, content) == expected


def test_counts_words_without_keywords():
    """Does the rate divide by the words of the text, keywords of the language left out?"""
    one = words.count({"a.py": "if not told:\n    return the_answer  # of it\n"})
    assert one.words == 5 and one.rate() == pytest.approx(2000)


def test_table_has_a_row_per_folder_and_a_total():
    """Does each row hold the rate now and at the commit?"""
    rows = words.table({"simt/a.py": "told\nx\n"}, {"simt/b.py": "x\n", "tests/c.py": "said\n"}, "abc").splitlines()
    assert [row.split()[0] for row in rows] == ["per", *words.FOLDERS, "total"]
    assert rows[2].split() == ["simt", "5000.0", "(1,", "2)", "0.0", "(0,", "1)"]
    assert rows[-1].split() == ["total", "5000.0", "(1,", "2)", "5000.0", "(1,", "2)"]
