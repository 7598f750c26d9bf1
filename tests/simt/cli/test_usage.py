"""python -m simt: is every failure before the program runs one clear sentence with its exit status?"""

import os
import subprocess
import sys

import pytest

from tests.simt.cli.sources import CHECK, FILL, MODEL, PAST_THE_END, SCRIPT, SOUND, line_of

NOT_COMPILED = (
    CHECK + "__global__ void k(float* p) {\n  p[0] = undeclared;  // first\n  int q = p;  // second\n}\n"
    "int main() { k<<<1, 1>>>(nullptr); }\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "check", "count"])
@pytest.mark.parametrize(
    "name, content, status, sentence",
    [
        ("missing.cu", None, 2, "missing.cu does not exist."),
        ("folder.cu", "folder", 2, "folder.cu is a folder"),
        ("empty.cu", " \n\n", 2, "empty.cu is empty."),
        ("binary.cu", "\x7fELF\0\0", 2, "binary.cu is not a text file."),
        ("missing.py", None, 2, "missing.py does not exist."),
        ("empty.py", "", 2, "empty.py is empty."),
        ("bad.py", "x = 1\nif x\n", 3, "bad.py, line 2: expected ':'"),
        ("nomain.cu", FILL, 3, "nomain.cu: The program has no main()"),
        (
            "error.cu",
            NOT_COMPILED,
            3,
            f"error.cu, line {line_of(NOT_COMPILED, '// first')}: ‘undeclared’ was not declared",
        ),
        (
            "ptx.cu",
            '__global__ void k() {\n  asm("ret;");\n}\nint main() { }\n',
            3,
            "ptx.cu, line 2: `ret`: this PTX instruction cannot run on the CPU",
        ),
        (
            "torch.cu",
            "#include <torch/extension.h>\nint main() { }\n",
            3,
            "torch.cu, line 1: #include <torch/extension.h>: a program cannot use torch",
        ),
        (
            "undefined.cu",
            "void other();\nint main() { other(); }\n",
            3,
            "undefined.cu, line 2: `other()` is declared and called, but no source defines it",
        ),
        (
            "large.cu",
            "__device__ float part[1 << 29];\n__device__ float next[4];\n"
            "__global__ void k(float* p) { p[0] = part[threadIdx.x] + next[threadIdx.x]; }\n"
            "int main() { k<<<1, 4>>>(nullptr); }\n",
            3,
            "The variables outside functions are larger than 2 GB together. Make the arrays smaller",
        ),
    ],
)
def test_what_cannot_be_run_is_one_sentence(simt, tmp_path, command, name, content, status, sentence):
    """Is each kind of bad input named by one sentence on stderr, with nothing on stdout and its own status?"""
    if command != "run" and status == 3 and name in ("ptx.cu", "undefined.cu", "large.cu"):
        pytest.skip("the same path as for run")
    if content == "folder":
        (tmp_path / name).mkdir()
        content = None
    done = simt(command, name, files={name: content} if content is not None else {})
    assert done.returncode == status and done.stdout == "" and done.stderr.startswith(f"simt: {sentence}"), done.stderr


def test_messages_of_the_compiler_are_about_the_users_lines(simt):
    """Do errors come in the order of the lines, with the lines' text, and those in a header with its name?"""
    done = simt("run", "error.cu", files={"error.cu": NOT_COMPILED})
    first, second = done.stderr.index("// first"), done.stderr.index("// second")
    assert first < second and "simt/" not in done.stderr
    done = simt(
        "run",
        "a.cu",
        files={
            "a.cu": '#include "h.cuh"\nint main() { }\n',
            "h.cuh": "#pragma once\n\n__device__ int f() { return nothing; }\n",
        },
    )
    assert done.returncode == 3 and done.stderr.startswith("simt: h.cuh, line 3: ‘nothing’ was not declared")


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["run"], "Missing argument 'FILE'"),
        (
            ["run", "--device", "B9000", "a.cu"],
            "Invalid value for '--device': The GPU 'B9000' is unknown. Choose one of T4",
        ),
        (["count", "--device", "", "a.cu"], "Invalid value for '--device': The GPU '' is unknown. Choose one of T4"),
        (["check", "--device", "100", "a.cu"], "The GPU '100' may be A100 or H100. Choose one of T4"),
        (["run", "--schedule", "sideways", "a.cu"], "'sideways' is not forward, reverse or an integer"),
        (["run", "--threads", "0", "a.cu"], "--threads"),
        (["run", "--seconds", "-1", "a.cu"], "--seconds"),
        (["run", "--nonsense", "a.cu"], "No such option"),
        (["walk", "a.cu"], "No such command"),
        (["check", "--json", "missing/folder.json", "a.cu"], "missing/folder.json: No such file or directory"),
        (["check", "-D", "X=1", "a.py"], "-I and -D are for FILE.cu"),
        (["check", "--json", "a.cu", "a.cu"], "--json a.cu: this would overwrite a source"),
        (["count", "--json", "a.py", "other.cu"], "--json a.py: this would overwrite a source"),
    ],
)
def test_wrong_usage_is_status_2(simt, tmp_path, words, sentence):
    """Does each wrong use say what is wrong?"""
    done = simt(*words, files={"a.cu": SOUND, "a.py": "pass\n"})
    assert done.returncode == 2 and sentence in done.stderr
    assert (tmp_path / "a.cu").read_text() == SOUND


@pytest.mark.slow
@pytest.mark.parametrize("file", ["a.cu", "a.py"])
@pytest.mark.parametrize("threads", ["abc", "0", "-1", "2.5"])
def test_a_number_of_threads_that_is_none_is_status_2(simt, file, threads):
    """Is a variable that holds no number of threads one sentence that names it, and is --threads heard in its place?"""
    done = simt("run", file, files={"a.cu": SOUND, "a.py": "pass\n"}, environment={"SIMT_THREADS": threads})
    assert done.returncode == 2 and f"SIMT_THREADS is '{threads}'. Set it to a positive integer" in done.stderr
    if threads == "abc":
        assert simt("run", "--threads", "2", file, environment={"SIMT_THREADS": threads}).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["check", "--json", "/dev/full", "a.cu"],
        ["count", "--json", "/dev/full", "a.cu"],
        ["check", "--json", "/dev/full", "a.py"],
    ],
)
def test_json_that_cannot_be_written_is_status_4(simt, words):
    """Is what was found told although the JSON found no room, and is the status not that of a finding?"""
    done = simt(*words, files={"a.cu": PAST_THE_END, "a.py": MODEL.replace("PAST", "+ 1")})
    assert (
        done.returncode == 4
        and done.stderr.splitlines()[-1] == "simt: The JSON cannot be written: No space left on device."
    )
    assert "check" not in words or "out_of_bounds" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["check", "--json", "-", "a.cu"], ["run", "a.py"]])
def test_standard_output_that_cannot_be_written_is_status_4(tmp_path, words):
    """The same of what is printed: one sentence, and none of Python's own at its end?"""
    (tmp_path / "a.cu").write_text(SOUND)
    (tmp_path / "a.py").write_text("print(1)\n")
    with open("/dev/full", "w") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}  # or print itself raises it in the script
        command = [sys.executable, "-m", "simt", *words]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            env=environment,
        )
    assert done.returncode == 4 and done.stderr.splitlines()[-1].endswith("cannot be written: No space left on device.")
    assert (
        done.stderr.count("cannot be written") == 1 and "Traceback" not in done.stderr and "ignored" not in done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("file", ["a.cu", "a.py"])
def test_no_compiler_and_no_cache_are_status_4(simt, tmp_path, file):
    """Is a machine without compiler, or without a place for built programs, told apart from a bad program?"""
    files = {"a.cu": SOUND, "a.py": SCRIPT}
    done = simt("run", file, files=files, environment={"CXX": "/nowhere/g++", "SIMT_CACHE": str(tmp_path / "cache")})
    assert done.returncode == 4 and "CXX is `/nowhere/g++`" in done.stderr
    (tmp_path / "file").write_text("")
    done = simt("run", file, environment={"SIMT_CACHE": str(tmp_path / "file" / "cache")})
    assert done.returncode == 4 and "Set SIMT_CACHE to a writable folder" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["check", "--help"], ["count", "-h"]])
def test_help_has_examples_and_exit_statuses(simt, words):
    """Does every help show how to call it and, for a command, what its exit status means?"""
    done = simt(*words)
    assert done.returncode == 0 and "Examples:" in done.stdout and "python -m simt" in done.stdout
    if len(words) == 2:
        assert all(f"{status}  " in done.stdout for status in (2, 3, 4, 130, *([] if words[0] == "run" else [5])))
