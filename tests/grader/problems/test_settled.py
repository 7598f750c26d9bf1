"""Is what running a problem's file has shown kept for the next process, and forgotten when anything it follows from
changes?
"""

import pytest

from grader.problems import determinism, problem, settled
from grader.problems.cases import Case, ProblemError
from simt.toolchain import cache

TEXT = """
import torch

rows = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(rows, 64)]


def get_init_inputs():
    return []
"""


@pytest.fixture(autouse=True)
def kept(monkeypatch, tmp_path):
    """The folder of a new cache."""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "problem"


def read(folder, text=TEXT, **overrides):
    """Return a problem as a new process would read it."""
    problem._make.cache_clear()
    file = folder / "doubled.py"
    file.write_text(text, encoding="utf-8")
    return problem.read(file, overrides)


def never():
    raise AssertionError("it was made again")


def test_cases_are_made_once(tmp_path, kept, monkeypatch):
    made = read(tmp_path).cases()
    assert len(made) > 3 and any(isinstance(case.set["rows"], int) for case in made)
    monkeypatch.setattr(problem.Problem, "_make_cases", lambda _: never())
    assert read(tmp_path).cases() == made
    with pytest.raises(AssertionError, match="again"):
        read(tmp_path, TEXT.replace("* 2", "* 3")).cases()
    with pytest.raises(AssertionError, match="again"):
        read(tmp_path, rows="8192").cases()


@pytest.mark.parametrize("values", [{"shape": (3, 5), "name": "a", "flag": None}, {"least": float("-inf")}])
def test_values_stay_what_they_are(values):
    """Are tuples still tuples? Is what cannot be read back made again?"""
    cases = [Case("one", values, reduction=7), Case("two")]
    assert settled.find_cases(TEXT, {}, lambda: cases) == cases
    assert settled.find_cases(TEXT, {}, never if "shape" in values else lambda: cases) == cases


def test_damaged_and_unusable_caches_are_done_without(tmp_path, kept, monkeypatch):
    made = read(tmp_path).cases()
    (file,) = kept.glob("*/found.txt")
    file.write_text("[{" + " " * (file.stat().st_size - 2), encoding="utf-8")
    assert read(tmp_path).cases() == made
    monkeypatch.setattr(cache, "find_or_make", lambda *_: (_ for _ in ()).throw(cache.make_unusable_error("full")))
    assert read(tmp_path).cases() == made


def test_a_model_is_found_determined_once(tmp_path, monkeypatch):
    one = read(tmp_path)
    determinism.check_determined(one, one.cases())
    monkeypatch.setattr(determinism, "_find_uncertainty", lambda _: never())
    other = read(tmp_path)
    determinism.check_determined(other, other.cases())
    assert other.determined == {"cpu"}


def test_a_random_model_is_refused_each_time(tmp_path):
    for _ in range(2):
        one = read(tmp_path, TEXT.replace("x * 2", "x * torch.rand(())"))
        with pytest.raises(ProblemError, match="random"):
            determinism.check_determined(one, one.cases())
