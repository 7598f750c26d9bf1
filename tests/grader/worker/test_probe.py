"""Is the level chosen that works, and never silently none?"""

import subprocess

import pytest

from grader.worker import bubblewrap, confine, levels, sandbox, view
from grader.worker.levels import Level


@pytest.fixture
def machine(monkeypatch):
    """Pretend a machine: what bubblewrap prints, and whether there is Landlock."""
    monkeypatch.delenv(levels.VARIABLE, raising=False)
    monkeypatch.setattr(view, "_find_compiler", lambda: "")  # it runs programs too

    def pretend(installed: bool = True, results=(), landlock: bool = True, level: str = ""):
        tries = []

        def run(*_, **__):
            tries.append(results[min(len(tries), len(results) - 1)])
            if isinstance(tries[-1], Exception):
                raise tries[-1]
            return subprocess.CompletedProcess([], 1 if tries[-1] else 0, "", tries[-1])

        monkeypatch.setattr(bubblewrap, "is_installed", lambda: installed)
        monkeypatch.setattr(bubblewrap.subprocess, "run", run)
        monkeypatch.setattr(confine, "find_trouble", lambda gpu: "" if landlock else "This kernel has no Landlock.")
        if level:
            monkeypatch.setenv(levels.VARIABLE, level)
        levels.probe.cache_clear()
        return levels.probe(), tries

    yield pretend
    levels.probe.cache_clear()


SLOW = subprocess.TimeoutExpired("bwrap", 20)
NO_NAMESPACES = "bwrap: No permissions to create a new namespace, likely because the kernel does not allow it."


def test_bubblewrap_works(machine):
    """Is it the level, and does a slow first try not change that?"""
    assert machine(results=[""])[0] == levels.Probe(Level.bubblewrap)
    found, tries = machine(results=[SLOW, ""])
    assert found.level is Level.bubblewrap and len(tries) == 2


@pytest.mark.parametrize("result", [SLOW, "bwrap: Can't find source path /x", OSError(8, "Exec format error")])
def test_bubblewrap_is_installed_and_fails(machine, result, tmp_path):
    """Is it tried twice, and then an error with what to do, at every level of care?"""
    found, tries = machine(results=[result])
    assert (
        len(tries) == 2 and found.is_broken and levels.VARIABLE in found.trouble and "bwrap --ro-bind" in found.trouble
    )
    for required in (True, False):
        with pytest.raises(sandbox.SandboxError, match="installed but does not run here"):
            sandbox.start(tmp_path / "x.py", b"", gpu=False, builds=tmp_path, required=required)


def test_the_machine_grants_no_namespaces(machine):
    """Is the second level used then, at once, and is it an error where there is none?"""
    found, tries = machine(results=[NO_NAMESPACES])
    assert found.level is Level.landlock and not found.trouble and "namespace" in found.note and len(tries) == 1
    assert machine(results=[NO_NAMESPACES], landlock=False)[0].is_broken


def test_bubblewrap_is_not_installed(machine):
    """Is the second level used, or none with both reasons?"""
    assert machine(installed=False)[0].level is Level.landlock
    found, _ = machine(installed=False, landlock=False)
    assert found.level is Level.none and not found.is_broken
    assert "apt install bubblewrap" in found.trouble and "no Landlock" in found.trouble


def test_a_level_is_forced(machine):
    """Does the variable choose the level, and is it an error where that does not work, or is no level?"""
    assert machine(results=[""], level="landlock")[0].level is Level.landlock
    none, _ = machine(results=[""], level="none")
    assert none.level is Level.none and none.trouble and not none.is_broken
    assert machine(installed=False, level="bubblewrap")[0].is_broken
    assert machine(landlock=False, level="landlock")[0].is_broken
    wrong, _ = machine(level="docker")
    assert wrong.is_broken and "`docker`" in wrong.trouble


@pytest.mark.parametrize("visible, has", [(None, True), ("0", True), ("0,1", True), ("", False), ("-1", False)])
def test_a_gpu_that_is_hidden_from_cuda_is_none(visible, has, tmp_path, monkeypatch):
    """Is a submission graded on the CPU where CUDA_VISIBLE_DEVICES hides all GPUs?"""
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(levels, "Path", lambda _: tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert levels.has_gpu() is has


UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"


@pytest.mark.parametrize(
    ("visible", "there"),
    [
        (None, ["0", "1", "2"]),
        ("2, 0", ["2", "0"]),
        ("1,3,0", ["1"]),  # there is no GPU 3, and CUDA reads no further
        ("0,-1,1", ["0"]),
        (f"{UUID},0", [UUID, "0"]),
        ("7", []),
    ],
)
def test_gpus_are_those_that_cuda_sees(visible, there, tmp_path, monkeypatch):
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setattr(levels, "Path", lambda _: tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert levels.list_gpus() == there
