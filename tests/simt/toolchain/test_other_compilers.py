"""Compilers besides g++ on x86-64: clang++, and aarch64 by a cross compiler, run under qemu's emulation. Each test is
skipped where its tools are missing.

    sudo apt-get install clang g++-aarch64-linux-gnu qemu-user
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sample import sample

PROGRAMS = Path(__file__).parents[1] / "programs"
CHECKS = Path(__file__).parents[1] / "checks"
NAMES = sorted(p.stem for p in PROGRAMS.glob("*.cu"))
FEW = ["histogram", "layernorm", "scan"]  # atomics, shuffles, barriers and a grid of several launches: each time
ARM = {"CXX": "aarch64-linux-gnu-g++"}
MAKE = """
import sys
from pathlib import Path
from simt.runtime import programs as program
from simt.toolchain import runtime_library
print(runtime_library.build_runtime() / "libsimt_runtime.so")
for file in sys.argv[1:]:
    print(program.make(Path(file), "plain").path)
"""

pytestmark = pytest.mark.slow
with_clang = pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not installed")
emulated = pytest.mark.skipif(
    not (shutil.which(ARM["CXX"]) and shutil.which("qemu-aarch64")),
    reason="aarch64-linux-gnu-g++ or qemu-aarch64 is not installed",
)


def expected(name: str) -> str:
    return (PROGRAMS / "expected" / f"{name}.txt").read_text()


def simt(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "simt", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **environment}
    )


@with_clang
@pytest.mark.parametrize("command", ["run", "check", "count"])
@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_programs_print_the_same_when_clang_built_them(name, command):
    """Is the output that of an H200, and a sound program free of findings?"""
    done = simt(command, PROGRAMS / f"{name}.cu", CXX="clang++")
    assert (done.stdout, done.returncode) == (expected(name), 0), done.stderr


@with_clang
@pytest.mark.parametrize(
    "name, check",
    [
        ("race_missing_first_barrier", "race"),
        ("out_of_bounds_no_guard", "out_of_bounds"),
        ("uninitialized_first_tile", "uninitialized"),
    ],
)
def test_defects_are_found_when_clang_built_them(name, check, tmp_path):
    """Are the findings of a clang build of the right check and line?"""
    file = CHECKS / f"{name}.cu"
    simt("check", "--json", tmp_path / "found.json", file, CXX="clang++")
    first = json.loads((tmp_path / "found.json").read_text())["findings"][0]
    lines = [n for n, line in enumerate(file.read_text().splitlines(), 1) if line.endswith(("// defect", "// other"))]
    assert first["check"] == check and first["line"] in lines


@pytest.fixture(scope="module")
def on_arm(tmp_path_factory):
    """Runs one of the ten programs, built for aarch64."""
    folder = tmp_path_factory.mktemp("aarch64")
    driver = folder / "driver"
    subprocess.run(
        ["aarch64-linux-gnu-gcc", "-O1", Path(__file__).with_name("emulated.c"), "-o", driver, "-ldl"], check=True
    )
    environment = {**os.environ, **ARM}

    def run(name: str) -> subprocess.CompletedProcess:
        make = [sys.executable, "-c", MAKE, str(PROGRAMS / f"{name}.cu")]
        runtime, built = subprocess.run(
            make, capture_output=True, text=True, check=True, env=environment
        ).stdout.split()
        command = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", driver, runtime, built]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    return run


@emulated
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_programs_print_the_same_on_aarch64(on_arm, name):
    """Do fibers, barriers, shuffles and atomics do the same on the other architecture?"""
    done = on_arm(name)
    assert (done.stdout, done.returncode) == (expected(name), 0), done.stderr
