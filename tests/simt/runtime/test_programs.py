"""Ten classic programs: do they print on the CPU what an H200 printed, and does no check find anything in them?

benchmarks/validate/programs.py wrote the expected outputs on the H200.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parents[1] / "programs"
NAMES = sorted(p.stem for p in PROGRAMS.glob("*.cu"))


def call(command: str, name: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "simt", command, *arguments, str(PROGRAMS / f"{name}.cu")],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def expected(name: str) -> str:
    return (PROGRAMS / "expected" / f"{name}.txt").read_text()


def test_there_are_ten_and_the_gpu_ran_them():
    """Has every program an output from a GPU, where it ended well and no tool of compute-sanitizer found anything?"""
    about = json.loads((PROGRAMS / "expected" / "machine.json").read_text())
    assert len(NAMES) == 10 and set(about["programs"]) == set(NAMES)
    assert "H200" in about["machine"]["gpu"]
    for name, result in about["programs"].items():
        assert result["status"] == 0 and "WRONG" not in expected(name) and expected(name)
        assert all("0 errors" in found for found in result["sanitizer"].values()), name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_prints_what_the_gpu_printed(name):
    """Is stdout the H200's, line for line, and the exit status 0?"""
    done = call("run", name)
    assert (done.stdout, done.returncode) == (expected(name), 0), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_check_finds_anything(name):
    """Is a sound program, run with every check on, free of findings, and its output the same?"""
    done = call("check", name)
    assert (done.stdout, done.returncode) == (expected(name), 0), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_another_order_of_threads_gives_the_same(name):
    """Does the output not depend on the order in which threads and blocks run?"""
    done = call("run", name, "--schedule", "7")
    assert (done.stdout, done.returncode) == (expected(name), 0), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_counting_changes_nothing(name, tmp_path):
    """Does a counted program print the same, and is each of its launches counted, with the kernel's own name?"""
    done = call("count", name, "--json", str(tmp_path / "counted.json"))
    assert (done.stdout, done.returncode) == (expected(name), 0), done.stderr
    source = (PROGRAMS / f"{name}.cu").read_text()
    kernels = {
        launch["kernel"].split("<")[0] for launch in json.loads((tmp_path / "counted.json").read_text())["launches"]
    }
    assert kernels and all(
        re.search(rf"__global__ void (__launch_bounds__\(.*\) )?{kernel}\(", source) for kernel in kernels
    ), kernels


DEFECTS = {
    # program: (text, its replacement, the check that must name it)
    "vector_add": ("if (i < n) c[i]", "if (i <= n) c[i]", "out_of_bounds"),
    "transpose": ("  __syncthreads();\n  // The block's", "  // The block's", "race"),
    "scan": ("int i = t; i < CHUNK; i += BLOCK) tree[i] =",
             "int i = t + 1; i < CHUNK; i += BLOCK) tree[i] =", "uninitialized"),
    "histogram": ("atomicAdd(&own[data[i]], 1u)", "own[data[i]]++", "race"),
    "matmul": ("    __syncthreads();\n  }\n  if (row < c.rows", "  }\n  if (row < c.rows", "race"),
    "stencil": ("tile[t + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0;", "", "uninitialized"),
    "reduction": ("    if (t < stride) s[t] += s[t + stride];\n    __syncthreads();\n  }\n"
                  "  if (t == 0) out[blockIdx.x] = s[0];\n}\n\n__device__ int warp_sum",
                  "    if (t < stride) { s[t] += s[t + stride]; __syncthreads(); }\n  }\n"
                  "  if (t == 0) out[blockIdx.x] = s[0];\n}\n\n__device__ int warp_sum", "barrier_divergence"),
    "bitonic_sort": ("own[t + THREADS] = chunk[t + THREADS];", "", "uninitialized"),
    "nbody": ("CHECK(cudaFree(d_velocities));", "", "leak"),
    "layernorm": ("layernorm2<<<shape.rows, 64, 64 * sizeof(float)>>>",
                  "layernorm2<<<shape.rows, 64, 60 * sizeof(float)>>>", "out_of_bounds"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_planted_defect_is_found(name, tmp_path):
    """Is the same program with one defect named for it, so that "no findings" above says something?"""
    text, replacement, check = DEFECTS[name]
    source = (PROGRAMS / f"{name}.cu").read_text()
    assert text in source
    (tmp_path / f"{name}.cu").write_text(source.replace(text, replacement, 1))
    done = subprocess.run(
        [sys.executable, "-m", "simt", "check", "--json", "found.json", f"{name}.cu"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=tmp_path,
    )
    found = {f["check"] for f in json.loads((tmp_path / "found.json").read_text())["findings"]}
    assert done.returncode == 1 and check in found, (found, done.stderr)
