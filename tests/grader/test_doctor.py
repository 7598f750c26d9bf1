"""Does grader doctor see what a build would meet?"""

import pytest
from click.testing import CliRunner

from grader import cli, doctor


def told() -> tuple[int, str]:
    done = CliRunner().invoke(cli.cli, ["doctor"])
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("variable", ["SIMT_CACHE", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_written(variable, monkeypatch):
    """Is a folder that cannot be made named, with what to set, and is the status that of a machine that builds nothing?"""
    monkeypatch.setenv(variable, "/proc/nope")
    status, said = told()
    assert status == cli.CANNOT
    assert "Nothing can be built, and so nothing graded: /proc/nope" in said and "set SIMT_CACHE and XDG_CACHE_HOME to folders that can be written" in said
    assert "fills it" not in said


def test_a_cache_without_a_home(monkeypatch):
    """Is a home that nobody has no traceback?"""
    monkeypatch.setenv("SIMT_CACHE", "~nobody_of_this_name/cache")
    status, said = told()
    assert status == cli.CANNOT and "Nothing can be built, and so nothing graded: Could not determine home directory." in said


def test_a_cache_that_can_be_made(tmp_path, monkeypatch):
    """Is a folder that is not there yet good enough, and is nothing left in it?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "new" / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    part = doctor._cache_folder()
    assert part.found == str(tmp_path / "new" / "cache") and not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert told()[0] == 0 and doctor._simt_cache().found == "" and "fills it" in doctor._simt_cache().mend


@pytest.mark.parametrize(
    "named, said",
    [
        ("/nope", "No C++ compiler was found. No CUDA code can be built, so only files without kernels can be graded. CXX is `/nope`: unset it, or set it to"),
        ('g++"', "CXX cannot be read (No closing quotation)."),
    ],
)
def test_a_compiler_that_is_not_there(named, said, monkeypatch):
    """Is CXX named where it is what is wrong, and no installation advised, which would not help?"""
    monkeypatch.setenv("CXX", named)
    status, words = told()
    assert status == cli.CANNOT and said in words and "apt install g++" not in words
