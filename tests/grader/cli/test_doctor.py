"""Does grader doctor see what a build would meet?"""

import pytest

from grader.cli import doctor, statuses
from grader.worker import levels, sandbox
from tests.grader.cli.commands import run


def report() -> tuple[int, str]:
    done = run("doctor")
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("variable", ["SIMT_CACHE", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_written(variable, monkeypatch):
    """Is a folder that cannot be made named, with what to set, and the status that of a machine that cannot build?"""
    monkeypatch.setenv(variable, "/proc/nope")
    status, printed = report()
    assert status == statuses.CANNOT
    assert (
        "No kernel can be built or graded: /proc/nope" in printed
        and "set SIMT_CACHE and XDG_CACHE_HOME to folders that can be written" in printed
    )
    assert "fills it" not in printed


def test_a_cache_without_a_home(monkeypatch):
    """Is the home of an unknown user reported without a traceback?"""
    monkeypatch.setenv("SIMT_CACHE", "~nobody_of_this_name/cache")
    status, printed = report()
    assert (
        status == statuses.CANNOT and "No kernel can be built or graded: Could not determine home directory." in printed
    )


def test_a_cache_that_can_be_made(tmp_path, monkeypatch):
    """Is a folder that is not there yet good enough, and is nothing left in it?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "new" / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    part = doctor._cache_folder()
    assert part.found == f"{tmp_path / 'new' / 'cache'}, 0.0 MiB" and not [
        path for path in tmp_path.rglob("*") if path.is_file()
    ]
    assert report()[0] == 0 and doctor._simt_cache().found == "" and "fills it" in doctor._simt_cache().fix


@pytest.mark.parametrize(
    "named, printed",
    [
        (
            "/nope",
            "No C++ compiler was found. CXX is `/nope`. Unset it, or set it to",
        ),
        ('g++"', "CXX cannot be read (No closing quotation)."),
    ],
)
def test_a_compiler_that_is_not_there(named, printed, monkeypatch):
    """Is CXX named where it is what is wrong, and no installation advised, which would not help?"""
    monkeypatch.setenv("CXX", named)
    status, words = report()
    assert status == statuses.CANNOT and printed in words and "apt install g++" not in words


def test_the_doctor_names_every_part_and_what_its_absence_costs(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    levels.probe.cache_clear()
    try:
        result = run("doctor")
    finally:
        levels.probe.cache_clear()
    assert result.exit_code == statuses.CANNOT
    for part in ("C++ compiler", "ninja", "torch", "warm cache", "GPU", "nvcc", "sandbox"):
        assert part in result.output
    for cure in ("apt install g++", "ninja", "apt install bubblewrap"):
        assert cure in result.output
    words = " ".join(result.output.split())
    assert "(on Debian and Ubuntu: `sudo apt install g++`). No CUDA code can be built" in words


@pytest.mark.parametrize(
    "trouble, advised",
    [
        ("bubblewrap is not installed (apt install bubblewrap).", 1),
        ("bubblewrap is installed but does not run here (no message).", 0),
    ],
)
def test_the_doctor_advises_once_and_only_what_helps(monkeypatch, trouble, advised):
    """Is bubblewrap to be installed where it is missing, reported once, and not if it is installed and does not run?"""
    monkeypatch.setattr(sandbox, "why_not", lambda: trouble)
    part = doctor._sandbox()
    assert (
        f"{part.costs} {part.fix}".count("apt install bubblewrap") == advised and trouble.split(" (")[0] in part.costs
    )
