"""Does benchmarks/validate/counted.py say in a sentence what it was not given as it should be?"""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.paths import MICRO, UNSEEN
from benchmarks.validate import counted

ROOT = Path(__file__).resolve().parents[2]


def run_command(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "benchmarks/validate/counted.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help(word):
    """Are all four uses shown?"""
    status, words = run_command(word)
    assert status == 0 and all(f"counted.py {kind} NAME" in words for kind in ("program", "cases", "full", "step"))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "the following arguments are required"),
        (["nope"], "invalid choice: 'nope'"),
        (["full", "conv2d"], "the following arguments are required: OUT"),
        (["program", "nope", "1", "out"], "nope is none of activations, atomic_patterns, "),
        (["program", "strides", "1", "out", "many"], "invalid int value: 'many'"),
        (["step", "nope", "out"], "nope is none of attention, bias_scale_sigmoid"),
        (["program", "strides", "1", "/nowhere/out"], "/nowhere/out cannot be written: it is a folder, or in none."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(arguments, words):
    """Is the status 2, and is the mistake named?"""
    status, shown = run_command(*arguments)
    assert status == 2 and words in shown


def test_programs_have_names_of_their_own():
    """Is no program of one folder hidden by one of the other, and has each its two sizes?"""
    found = counted.list_programs()
    assert len(found) == sum(len(list(folder.glob("*.cu"))) for folder in (MICRO, UNSEEN)) > 60
    assert all(int(small) <= int(large) for small, large in map(counted.read_sizes, found.values()))
