"""Do the files that set the project up agree with one another, and with the tree?"""

import fnmatch
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONDA_NAMES = {"torch": "pytorch", "playwright": "playwright-python"}
# What conda must bring besides Python packages.
CONDA_ONLY = {"python", "pip", "make", "cxx-compiler"}


def wanted():
    """Every requirement of pyproject.toml, extras included."""
    project = PROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(text) for requirements in lists for text in requirements]


def locked():
    """name -> version of every line of requirements.lock."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))


def targets():
    """name -> commands that make would run for it, nothing run."""
    return re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_lock_satisfies(requirement):
    """Does requirements.lock pin a version that pyproject.toml accepts?"""
    assert requirement.specifier.contains(locked()[requirement.name])


def test_conda_agrees():
    """Does environment.yml ask for the same packages and versions as pyproject.toml?"""
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    asked = {r.name: r.specifier for r in map(Requirement, (d for d in conda if isinstance(d, str)))}
    python = asked["python"]
    expected = {CONDA_NAMES.get(r.name, r.name): r.specifier for r in wanted()}
    assert {k: v for k, v in asked.items() if k not in CONDA_ONLY} == expected
    assert python == Requirement("python" + PROJECT["project"]["requires-python"]).specifier


def test_each_dependency_has_a_reason():
    """Does every requirement's line in pyproject.toml end with a comment?"""
    text = (ROOT / "pyproject.toml").read_text()
    lines = [line for line in text.splitlines() if re.match(r'\s+"[a-z-]+>=', line)]
    assert len(lines) == len(wanted())
    assert not [line for line in lines if not re.search(r"# \S.*\S", line)]


def test_simt_headers_are_packaged():
    """Is every file of simt that is not Python named by package-data?"""
    globs = PROJECT["tool"]["setuptools"]["package-data"]["simt"]
    files = [p.relative_to(ROOT / "simt") for p in (ROOT / "simt").rglob("*") if p.is_file()]
    left_out = [
        str(p)
        for p in files
        if p.suffix not in {".py", ".pyc", ".md"}
        and not any(fnmatch.fnmatch("/" + str(p), g) for g in globs)
    ]
    assert not left_out


def test_command_is_there():
    """Does the console script that pyproject.toml declares answer --help?"""
    grader = Path(sys.executable).with_name("grader")
    done = subprocess.run([grader, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "grade" in done.stdout


def test_readme_names_only_targets_that_exist():
    """Is every `make X` of the README a target of the Makefile?"""
    named = set(re.findall(r"`?make ([a-z]+)`?\b", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= named <= set(targets())


def test_plain_make_prints_help():
    """Does `make` alone list every target and run none?"""
    done = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert all(f"make {target}" in done.stdout for target in targets())


@pytest.mark.parametrize(
    "missing, word",
    [("PYTHON=no-such-python", "Python 3.11"), ("CXX=no-such-compiler", "C++ compiler")],
)
def test_missing_system_part_is_one_sentence(missing, word):
    """Does make say in one line what is missing and which command mends it?"""
    name, value = missing.split("=")
    environment = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MFLAGS", "CXX"}}
    command = ["make", "-C", ROOT, "system"] + ([missing] if name == "PYTHON" else [])
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment | {name: value}
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode != 0
    assert len(said) == 1 and word in said[0] and re.search(r": .*install", said[0])


def test_no_registry_is_named():
    """Is no package index's address written into the files that set things up?"""
    files = ["Makefile", "pyproject.toml", "requirements.lock", "environment.yml", ".ci/run"]
    assert not [f for f in files if re.search(r"https?://|index-url|find-links", (ROOT / f).read_text())]
