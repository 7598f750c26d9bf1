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
    from_pip = [each for entry in conda if isinstance(entry, dict) for each in entry["pip"] if each != "-e ."]
    named = [*(entry for entry in conda if isinstance(entry, str)), *from_pip]  # conda need not have the latter
    conda_specifiers = {r.name: r.specifier for r in map(Requirement, named)}
    python = conda_specifiers["python"]
    expected = {CONDA_NAMES.get(r.name, r.name): r.specifier for r in wanted()}
    assert {k: v for k, v in conda_specifiers.items() if k not in CONDA_ONLY} == expected
    assert python == Requirement("python" + PROJECT["project"]["requires-python"]).specifier


def test_each_dependency_has_a_reason():
    """Does every requirement's line in pyproject.toml end with a comment?"""
    text = (ROOT / "pyproject.toml").read_text()
    lines = [line for line in text.splitlines() if re.match(r'\s+"[a-z0-9-]+(\[[a-z]+\])?>=', line)]
    assert len(lines) == len(wanted())
    assert not [line for line in lines if not re.search(r"# \S.*\S", line)]


def test_simt_headers_are_packaged():
    """Is every file of simt that is not Python named by package-data?"""
    globs = PROJECT["tool"]["setuptools"]["package-data"]["simt"]
    files = [p.relative_to(ROOT / "simt") for p in (ROOT / "simt").rglob("*") if p.is_file()]
    left_out = [
        str(p)
        for p in files
        if p.suffix not in {".py", ".pyc", ".md"} and not any(fnmatch.fnmatch("/" + str(p), g) for g in globs)
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


SHOWN = re.compile(r"^\$ python -m (simt (\w+) \S+)\n(.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)


def blocks(text):
    """Return the texts between ``` and ```."""
    return re.findall(r"^ *```\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("file", ["README.md", "simt/README.md", "docs/INSTRUCTORS.md"])
def test_commands_of_the_project_come_after_the_activation(file):
    """Does each part that runs `grader` or simt show which environment they are in?"""
    parts = re.split(r"^## ", (ROOT / file).read_text(), flags=re.MULTILINE)
    using = [
        part
        for part in parts
        if any(re.search(r"^ *(\$ python -m simt|grader) ", block, re.MULTILINE) for block in blocks(part))
    ]
    assert using and not [part.splitlines()[0] for part in using if "source .venv/bin/activate" not in part]


@pytest.mark.parametrize(
    "command, mode, shown", SHOWN.findall("".join(blocks((ROOT / "simt" / "README.md").read_text())))
)
def test_simt_prints_what_its_readme_shows(command, mode, shown):
    """Is it what simt prints, line for line, with a mark wherever lines were left out?"""
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    printed = (done.stdout if mode == "run" else done.stderr).splitlines()
    lines = [line for line in printed if not line.startswith("simt: compiling")]  # the first time
    exact = "".join(r"(?:.*\n)*" if line.strip() == "…" else re.escape(line) + r"\n" for line in shown.splitlines())
    assert re.fullmatch(exact, "\n".join(lines) + "\n"), "\n".join(lines)


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
    """Does make say in one line what is missing and which command fixes it?"""
    name, value = missing.split("=")
    environment = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MFLAGS", "CXX"}}
    command = ["make", "-C", ROOT, "system"] + ([missing] if name == "PYTHON" else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment | {name: value})
    lines_printed = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode != 0
    assert len(lines_printed) == 1 and word in lines_printed[0] and re.search(r": .*install", lines_printed[0])


PYTHON_PLAYED = """#!/bin/sh
# Plays Python for the Makefile. STOP: what Ctrl-C meets, or what fails.
echo "$*" >> calls
interrupted() { kill -INT 0; sleep 5; }
case "$*" in
    *venv.main*)
        mkdir -p .venv/bin && cp "$0" .venv/bin/python
        [ "$STOP" = venv ] && interrupted
        touch .venv/pip ;;
    *"pip --version"*) test -e .venv/pip ;;
    *"pip install"*)
        touch .venv/installed
        [ "$STOP" = pip ] && { touch .venv/half_a_package; interrupted; }
        [ "$STOP" != network ] ;;
    *warm_up*) [ "$STOP" = compiling ] && interrupted; true ;;
esac
"""


@pytest.fixture
def made(tmp_path):
    """Runs `make .venv/.ready` in a folder where Python is played; gives the exit status and what Python was called
    with.
    """
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    python = tmp_path / "python3"
    python.write_text(PYTHON_PLAYED)
    python.chmod(0o755)

    def make(stop="", shell="/bin/sh"):
        environment = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MFLAGS", "CXX"}} | {"STOP": stop}
        (tmp_path / "calls").write_text("")
        command = ["make", f"PYTHON={python}", f"SHELL={shell}", "CXX=sh", ".venv/.ready"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | {"CXX": "sh"},
            capture_output=True,
            text=True,
            timeout=60,
            start_new_session=True,
        )
        return done.returncode, (tmp_path / "calls").read_text()

    return make


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize(("stop", "rebuilt"), [("venv", True), ("pip", True), ("compiling", False), ("network", False)])
def test_make_sets_up_again_after_an_interruption(made, tmp_path, stop, rebuilt, shell):
    """Is nothing kept that Ctrl-C left half made, what is whole kept, and nothing done once everything is there?"""
    status, _ = made(stop, shell)
    assert status != 0 and not (tmp_path / ".venv/.ready").exists()
    status, calls = made(shell=shell)
    assert status == 0 and (tmp_path / ".venv/.ready").exists()
    assert ("venv.main" in calls) is rebuilt and calls.count("pip install") == 2
    assert sorted(path.name for path in (tmp_path / ".venv").iterdir()) == [".ready", "bin", "installed", "pip"]
    status, calls = made(shell=shell)
    assert status == 0 and "-m pip" not in calls and "venv.main" not in calls


@pytest.mark.parametrize("missing", [(), ("right",), ("right", "wrong")])
def test_the_demo_grades_what_a_hand_out_has(tmp_path, missing):
    """Does `make demo` leave out the right kernel where it was not handed out, say so, and expect the verdicts of the
    others?
    """
    files = {
        "right": "kernels_ref/groupnorm/solution.py",
        "unwritten": "kernels_student/groupnorm.py",
        "wrong": "tests/specimens/groupnorm_stats_per_position.py",
    }
    verdicts = {"right": "passed", "unwritten": "not_attempted", "wrong": "failed"}
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    there = [which for which in files if which not in missing]
    for which in there:
        (tmp_path / files[which]).parent.mkdir(parents=True)
        (tmp_path / files[which]).touch()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    grader = tmp_path / ".venv/bin/grader"
    shown = "\n".join(f'{{"outcome":"{verdicts[which]}"}}' for which in there)
    grader.write_text(
        f'#!/bin/sh\necho "$*" > calls\ncat > .venv/demo.json <<EOF\n{shown}\nEOF\n'
        f"exit {4 if 'wrong' in missing else 1}\n"
    )
    grader.chmod(0o755)
    done = subprocess.run(
        ["make", "-o", ".venv/.ready", "demo"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().split("--problem")[0].split() == [
        "grade",
        *(files[which] for which in there),
    ]
    assert ("the right kernel is left out" in done.stdout) is ("right" in missing)


def test_a_port_that_is_no_number_is_one_sentence():
    """Does `make lab` refuse JUPYTER_PORT=abc without a traceback?"""
    command = ["make", "-C", ROOT, "-o", ".venv/.ready", "lab"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | {"JUPYTER_PORT": "abc"})
    lines_printed = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert (
        done.returncode != 0 and len(lines_printed) == 1 and lines_printed[0].startswith("JUPYTER_PORT=abc is no port")
    )


def test_no_registry_is_named():
    """Is no package index's address written into the files that set things up?"""
    files = ["Makefile", "pyproject.toml", "requirements.lock", "environment.yml", ".ci/run"]
    assert not [f for f in files if re.search(r"https?://|index-url|find-links", (ROOT / f).read_text())]
