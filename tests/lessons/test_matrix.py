"""Do the lessons print the same on every processor, with any number of threads, and with every supported torch?

Each combination runs a lesson in a new process under nbval, which compares its outputs with the committed ones. `make
test-all` runs all lessons plainly, which covers the widest instruction set of the machine with a thread per core, and
here every second lesson in one combination, the others in the other one. COURSE_MATRIX=1 runs all in both.

Name further Pythons, each with torch, nbval and the course's other dependencies, in COURSE_PYTHONS (separated as PATH
is): the oldest and the newest torch among them and this Python run the lessons too. A combination that this machine
cannot run is skipped, and `pytest -rs` shows why:

    COURSE_PYTHONS=~/torch211/bin/python pytest -rs tests/lessons/test_matrix.py
"""

import functools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LESSONS = sorted((ROOT / "lessons").glob("[0-9]*.ipynb"))
CAPABILITIES = ("default", "avx2", "avx512")  # what ATEN_CPU_CAPABILITY takes, each one more than the one before
COMBINATIONS = [("default", 1), ("avx2", 4)]
TIMEOUT_S = 600  # a lesson takes 10 to 60 seconds, and more when its kernels are not in simt's cache yet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT_S + 60)]
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


def environment(**settings):
    """Return this process's environment without what it says of its own pytest run or of torch's CPU kernels."""
    owned = ("PYTEST_", "ATEN_CPU_CAPABILITY", "OMP_", "MKL_", "SIMT_THREADS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(owned)}
    return kept | {"PYTHONPATH": os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")]).rstrip(os.pathsep)} | settings


def output_of(python, code):
    """Return what `python -c code` prints, or None where it fails."""
    done = subprocess.run([python, "-c", code], env=environment(), capture_output=True, text=True, timeout=120)
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def best_capability():
    """Return the index in CAPABILITIES of the widest instruction set that torch uses on this machine; 0 if unknown."""
    best = (output_of(sys.executable, "import torch; print(torch.backends.cpu.get_cpu_capability())") or "").lower()
    return CAPABILITIES.index(best) if best in CAPABILITIES else 0


@functools.cache
def pythons():
    """Return {(2, 13): path of an interpreter with that torch} of this Python and those in COURSE_PYTHONS, and a list
    of those that cannot run the lessons.
    """
    found, unusable = {}, []
    for python in [sys.executable, *filter(None, os.environ.get("COURSE_PYTHONS", "").split(os.pathsep))]:
        version = output_of(python, "import nbval, torch; print(torch.__version__)")
        if version is None:
            unusable.append(python)
        else:
            found.setdefault(tuple(map(int, version.split(".")[:2])), python)
    return found, unusable


def oldest_supported():
    """Return the lowest torch that pyproject.toml allows, as (2, 11)."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return next(tuple(map(int, m.groups())) for d in dependencies if (m := re.match(r"torch>=(\d+)\.(\d+)", d)))


def check_outputs(lesson, python=sys.executable, **settings):
    """Run the lesson under nbval and fail with nbval's report if it prints anything but what is committed."""
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", str(lesson)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(**settings), capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert re.search(r"\d+ passed", done.stdout), done.stdout[-1000:]


@pytest.mark.slow
@each_lesson
@pytest.mark.parametrize(("capability", "threads"), COMBINATIONS)
def test_outputs_do_not_depend_on_the_processor(lesson, capability, threads):
    """Does the lesson print what is committed, with this instruction set and this number of threads?"""
    turn = (LESSONS.index(lesson) + COMBINATIONS.index((capability, threads))) % len(COMBINATIONS)
    if turn and not os.environ.get("COURSE_MATRIX"):
        pytest.skip("the lesson's other combination is run; COURSE_MATRIX=1 runs both")
    if CAPABILITIES.index(capability) > best_capability():
        pytest.skip(f"torch has no {capability} kernels on this machine (best: {CAPABILITIES[best_capability()]})")
    check_outputs(
        lesson,
        ATEN_CPU_CAPABILITY=capability,
        OMP_NUM_THREADS=str(threads),
        MKL_NUM_THREADS=str(threads),
        MKL_DYNAMIC="FALSE",  # else MKL takes no more threads than there are cores
        SIMT_THREADS=str(threads),  # that run the blocks of a kernel
    )


@each_lesson
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_outputs_do_not_depend_on_torch(lesson, which):
    """Does the lesson print what is committed, with the oldest supported and with the newest torch at hand?"""
    found, unusable = pythons()
    version = oldest_supported() if which == "oldest" else max(found)
    shown = ".".join(map(str, version))
    if version not in found:
        without = f"; without torch and nbval: {', '.join(unusable)}" if unusable else ""
        pytest.skip(f"no Python with torch {shown}: name one in COURSE_PYTHONS{without}")
    if found[version] == sys.executable:
        pytest.skip(f"torch {shown} is this Python's, which the other combinations run")
    check_outputs(lesson, found[version], OMP_NUM_THREADS="2")


def test_a_changed_output_is_found(tmp_path):
    """Does a lesson whose committed output is wrong fail here?"""
    notebook = tmp_path / "changed.ipynb"
    notebook.write_text(
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"id": "a", "cell_type": "code", "source":'
        ' "print(1)", "metadata": {}, "execution_count": 1, "outputs": [{"output_type": "stream", "name": "stdout",'
        ' "text": "2\\n"}]}]}'
    )
    with pytest.raises(AssertionError, match="mismatch"):
        check_outputs(notebook)
