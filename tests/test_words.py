"""The committed words of each specimen: is there an entry for each, does it show the line to look at, and is it what is
shown today?
"""

import re
import tomllib
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
SPECIMENS = ROOT / "tests" / "specimens"
EXPECTED = tomllib.loads((SPECIMENS / "expected.toml").read_text(encoding="utf-8"))
WRONG = tomllib.loads((SPECIMENS / "wrong_lines.toml").read_text(encoding="utf-8"))
TABLE = dict(
    re.findall(
        r"^## (\w+)\n(.*?)(?=^## |\Z)", (SPECIMENS / "WORDS.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
)
NO_LINES = {"groupnorm_comments_only", "groupnorm_empty_file"}  # there is no line that could be wrong


def shown_lines(words: str) -> list[str]:
    """Lines of the student's that an entry shows."""
    return re.findall(r"^[→ ] *\d+ │ ?(.*)$", words, re.MULTILINE)


def test_every_specimen():
    """Has the table an entry for each specimen and no other?"""
    assert set(TABLE) == set(EXPECTED)


@pytest.mark.parametrize(
    "name",
    sorted(
        name for name in EXPECTED if EXPECTED[name].get("outcome", "failed") == "failed" and "gap" not in EXPECTED[name]
    ),
)
def test_lines(name):
    """Do the words show lines of the student's own, the one that is wrong among them where it is known?"""
    lines = shown_lines(TABLE[name])
    assert bool(lines) is (name not in NO_LINES)
    source = (SPECIMENS / f"{name}.py").read_text(encoding="utf-8")
    assert all(line.strip() in source for line in lines)
    if "at" in EXPECTED[name]:
        assert any(EXPECTED[name]["at"] in line for line in lines)


def _words():
    from benchmarks.publish import words

    return words


def _marked(name):
    """Return a specimen as a parameter; one whose line is known not to be marked yet is expected to fail."""
    why = EXPECTED[name].get("unmarked")
    return pytest.param(name, marks=[pytest.mark.xfail(reason=why, strict=True)] if why else [])


@pytest.mark.parametrize("name", [_marked(name) for name in sorted(WRONG)])
def test_the_wrong_line_is_marked(name):
    """Of the lines that the check, or its first hint, marks: are they wrong ones, and no others?"""
    source = (SPECIMENS / f"{name}.py").read_text(encoding="utf-8")
    assert all(part in source for part in WRONG[name])
    assert _words().is_named(TABLE[name], WRONG[name]), _words().marked(TABLE[name])


def test_rates():
    """Are the lines of all specimens named but those known not to be, and of four in five references with one line
    broken?
    """
    head = (SPECIMENS / "WORDS.md").read_text(encoding="utf-8").partition("\n## ")[0]
    counts = re.search(r"Of (\d+) specimens.*?in (\d+)\b.*?\. Of (\d+)\s+reference.*?in (\d+)", head, re.DOTALL)
    specimens, hits, references, found = map(int, counts.groups())
    assert specimens == len(WRONG) and hits == specimens - sum("unmarked" in EXPECTED[name] for name in WRONG)
    assert (
        references == len(tomllib.loads((SPECIMENS / "broken_references.toml").read_text(encoding="utf-8")))
        and found >= 0.8 * references
    )


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="the words are those of a machine without a GPU")
@pytest.mark.parametrize(
    "name",
    [
        "conv2d_division_by_zero",
        "groupnorm_missing_barrier",
        "logsumexp_missing_semicolon",
        "logsumexp_undeclared_function",
    ],
)
def test_table_is_of_today(name):
    """Does `benchmarks/publish/words.py` write today what is committed?"""
    assert _words().entry(name, 30.0).partition("\n")[2].strip() == TABLE[name].strip()
