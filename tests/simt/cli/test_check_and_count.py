"""python -m simt check and count: do they name what is wrong and what a kernel costs?"""

import json

import pytest

from tests.simt.cli.sources import CHECK, FILL, MODEL, PAST_THE_END, SOUND, line_of


@pytest.mark.slow
def test_check_of_a_sound_program(simt, tmp_path):
    """Is a sound program's output untouched, nothing found, and the status 0 whatever the program's own is?"""
    done = simt("check", "--json", "found.json", "a.cu", "100", "42", files={"a.cu": SOUND})
    assert (done.stdout, done.returncode) == ("100 elements, the last is 7\n", 0), done.stderr
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["findings"] == [] and kept["status"] == 42
    done = simt("check", "a.cu", "7", "--json", "-")
    assert done.stdout.startswith("7 elements, the last is 7\n{") and '"findings": []' in done.stdout


@pytest.mark.parametrize("name", ["a.cu", "an odd (name).cu"])
def test_check_names_what_is_wrong(simt, tmp_path, name):
    """Is a write past the end named with its line and thread, in text and JSON, and the status 1?"""
    done = simt("check", "--json", "found.json", name, "60", files={name: PAST_THE_END})
    assert done.returncode == 1 and done.stdout == "60 elements, the last is 7\n" and "out_of_bounds" in done.stderr
    finding = json.loads((tmp_path / "found.json").read_text())["findings"][0]
    expected = {
        "check": "out_of_bounds",
        "kernel": "fill",
        "source": name,
        "line": line_of(PAST_THE_END, "// here"),
        "array": "p",
        "index": 60,
    }
    assert {k: finding[k] for k in expected} == expected


@pytest.mark.parametrize(
    "change, check, line",
    [
        (("CHECK(cudaFree(p));", ""), "leak", "cudaMalloc"),
        (("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice"), "illegal_address", "cudaMemcpyHostToDevice"),
        (("p + n - 1, sizeof(int)", "p + n - 1, 2 * sizeof(int)"), "out_of_bounds", "2 * sizeof"),
        (("32>>>(p", "32>>>((int*)malloc(400)"), "illegal_address", "// here"),
    ],
)
def test_check_of_what_the_host_does_wrong(simt, tmp_path, change, check, line):
    """Are leaks, refused copies and host pointers given to kernels findings with their lines?"""
    source = SOUND.replace(*change)
    done = simt("check", "--json", "found.json", "a.cu", files={"a.cu": source})
    found = [(f["check"], f["line"]) for f in json.loads((tmp_path / "found.json").read_text())["findings"]]
    assert done.returncode == 1 and (check, line_of(source, line)) in found, found


@pytest.mark.slow
def test_check_looks_at_other_orders_but_not_at_times(simt):
    """Is output that depends on the order of threads found, and are lines that differ anyway, such as times, passed
    over?
    """
    source = SOUND.replace('printf("%d elements', 'printf("%lld\\n", (long long)clock()); printf("%d elements').replace(
        "#include <cstdio>", "#include <cstdio>\n#include <ctime>"
    )
    done = simt("check", "a.cu", files={"a.cu": source})
    assert done.returncode == 0, done.stderr
    done = simt("check", "a.cu", files={"a.cu": source.replace("p[i] = value;", "atomicExch(p + n - 1, i);")})
    assert done.returncode == 1 and "schedule" in done.stderr


def test_check_finds_the_host_in_device_memory(simt, tmp_path):
    """Is reading cudaMalloc's memory on the host, which a GPU answers by a crash, found? And not so with managed
    memory?
    """
    source = (
        CHECK
        + FILL
        + """
int main(int argc, char**) {
  int *p, *q, sum = 0;
  if (argc > 1) CHECK(cudaMallocManaged(&p, 400));
  else CHECK(cudaMalloc(&p, 400));
  CHECK(cudaMallocHost(&q, 400));
  fill<<<4, 32>>>(p, 100, 7);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(q, p, 400, cudaMemcpyDefault));
  CHECK(cudaMemset(p, 0, 4));
  for (int i = 0; i < 100; i++) sum += p[i] + q[i];  // host
  printf("%d", sum);
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(q));
}
"""
    )
    done = simt("check", "--json", "found.json", "a.cu", files={"a.cu": source})
    (finding,) = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert done.returncode == 1 and (finding["check"], finding["line"]) == (
        "illegal_address",
        line_of(source, "// host"),
    )
    assert "only kernels and cudaMemcpy can access" in finding["message"]
    done = simt("check", "a.cu", "managed")
    assert (done.stdout, done.returncode) == ("1393", 0), done.stderr


def test_kernels_launched_through_pointers_have_their_names(simt, tmp_path):
    """Is a kernel that is launched through a variable told by its own name, template arguments and parameters?"""
    source = (
        SOUND.replace("__global__ void fill", "template <int EXTRA> __global__ void fill")
        .replace("i < n", "i < n + EXTRA")
        .replace("fill<<<", "(version.kernel)<<<")
    )
    source = source.replace("int main", "struct Version { void (*kernel)(int*, int, int); };\nint main").replace(
        "int* p;", "int* p; Version version{fill<1>};"
    )
    for text in (
        source,
        source.replace("(version.kernel)<<<", "chosen<<<").replace("int* p;", "int* p; auto chosen = fill<1>;"),
    ):
        simt("check", "--json", "found.json", "a.cu", files={"a.cu": text})
        (finding,) = json.loads((tmp_path / "found.json").read_text())["findings"]
        assert (finding["check"], finding["kernel"], finding["array"]) == ("out_of_bounds", "fill<1>", "p")


def test_check_reports_after_exit_and_after_a_crash(simt):
    """Is what was found told although the program calls exit or crashes, and is a crash alone status 1?"""
    for end in ("exit(0);", "*(volatile int*)nullptr = 1;"):
        done = simt(
            "check",
            "a.cu",
            "60",
            files={"a.cu": PAST_THE_END.replace("return argc", f"fflush(stdout); {end} return argc")},
        )
        assert done.returncode == 1 and "out_of_bounds" in done.stderr and done.stdout == "60 elements, the last is 7\n"
    done = simt("check", "a.cu", files={"a.cu": "int main() {\n  *(volatile int*)nullptr = 1;\n}\n"})
    assert (
        done.returncode == 1
        and "illegal_address: a.cu, line 2: " in done.stderr
        and "through a null pointer" in done.stderr
    )


INCLUDED = """
#include <cassert>

__device__ inline void visit(int* out, int which) {
  int at = threadIdx.x;
  if (which == 0) assert(__shfl_sync(0xffffffff, at, 3) == 5 &&
                         "the lane");
  if (which == 1 && at < 16) __syncthreads();
  if (which == 2) at = __shfl_sync(0x1, at, 0);
  if (which == 3) __trap();
  if (which == 4 && at < 16) at = __shfl_down_sync(0xffffffff, at, 16);
  if (which == 5) at = __shfl_down_sync(0xffffffff, at, 30);
  out[at] = at;
}
"""
INCLUDES = """
#include "visit.cuh"
template <class... Outs> __global__ void all(int which, Outs*... outs) { (visit(outs, which), ...); }
int main(int argc, char** argv) {
  int *a, *b;
  cudaMalloc(&a, 128);
  cudaMalloc(&b, 64);
  all<<<1, atoi(argv[2])>>>(atoi(argv[1]), a, b);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    "which, threads, check, line, words",
    [
        (0, 32, "device_assert", 6, """The assertion `__shfl_sync(0xffffffff, at, 3) == 5 && "the lane"` in line"""),
        (1, 32, "barrier_divergence", 8, ""),
        (2, 32, "warp_divergence", 9, ""),
        (3, 32, "device_assert", 10, ""),
        (4, 32, "warp_divergence", 11, "but has returned from the kernel without this call"),
        (5, 31, "warp_divergence", 12, "but does not exist: the block has only 31 threads"),
        (6, 17, "out_of_bounds", 13, "element 16 of `outs`"),
    ],
)
def test_what_fails_in_an_included_file_is_located_there(simt, tmp_path, which, threads, check, line, words):
    """Do finding and error name the included file, and in the words of the source what failed?"""
    files = {"visit.cuh": INCLUDED, "a.cu": "#include <cstdlib>" + INCLUDES}
    done = simt("check", "--json", "found.json", "a.cu", str(which), str(threads), files=files)
    found = json.loads((tmp_path / "found.json").read_text())
    finding = next(f for f in found["findings"] if f["check"] == check)
    assert (finding["source"], finding["line"]) == ("visit.cuh", line) and words in finding["message"], done.stderr
    assert found["failure"] is None or f"visit.cuh line {line})" in found["failure"]


@pytest.mark.slow
def test_check_of_a_model(simt):
    """Does `simt check FILE.py` call the model and name its defect?"""
    done = simt("check", "a.py", files={"a.py": MODEL.replace("PAST", "+ 1")})
    assert done.returncode == 1 and "out_of_bounds" in done.stderr and "cuda_sources" in done.stderr
    done = simt("check", "a.py", files={"a.py": MODEL.replace("PAST", "")})
    assert done.returncode == 0, done.stderr


MAIN_PART = "\nif __name__ == '__main__':\n    pass\n"
UNLAUNCHED = {
    "no inputs": (
        MODEL.partition("def get_inputs")[0],
        "a.py defines ModelNew but no inputs for it. Add get_inputs()",
    ),
    "a main part": (MODEL + MAIN_PART, "The main part of a.py launches none."),
    "a model without kernels": (
        MODEL.replace("module.filled(x, self.value)", "x"),
        "ModelNew.forward launches none for the inputs of get_inputs().",
    ),
    "neither": ("print(1)\n", "Nothing in a.py launches one. Add ModelNew and get_inputs(), or an `if __name__"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNLAUNCHED)
def test_a_script_that_launches_nothing_is_not_called_clean(simt, tmp_path, name):
    """Does check say that it had no kernel to check, and what the file lacks, in text and JSON, with a status of its
    own?
    """
    text, why = UNLAUNCHED[name]
    done = simt("check", "--json", "found.json", "a.py", files={"a.py": text.replace("PAST", "+ 1")})
    assert done.returncode == 5 and f"No kernel was launched, so none was checked. {why}" in done.stderr
    assert "No check found anything" not in done.stderr
    assert why in json.loads((tmp_path / "found.json").read_text())["said"][0]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "count"])
def test_a_program_that_launches_nothing_is_told(simt, command):
    """Is a program whose main returns before its kernels told from a clean one?"""
    source = SOUND.replace("int n = argc", "if (argc == 1) return 0;\n  int n = argc")
    done = simt(command, "a.cu", files={"a.cu": source})
    assert (done.returncode, done.stderr) == (5, f"simt: No kernel was launched, so none was {command}ed.\n")
    assert simt(command, "a.cu", "100").returncode == 0


LOCAL = """#include <cuda_runtime.h>
__device__ __noinline__ void fill(float* held, int by) {
  for (int i = 0; i < 16; ++i) held[i * by % 16] = i;
}
__global__ void turn(float* out, int by) {
  float held[16];
  __syncthreads();
  fill(held, by);
  out[threadIdx.x] = held[by];
}
int main() { float* out; cudaMalloc(&out, 256); turn<<<1, 64>>>(out, 3); cudaDeviceSynchronize(); cudaFree(out); }
"""


def test_a_first_launch_knows_local_memory(simt, tmp_path):
    """Are accesses to a thread's own array local ones, also in the launch whose barrier makes the first stacks?"""
    done = simt("count", "--json", "counted.json", "a.cu", files={"a.cu": LOCAL})
    assert done.returncode == 0, done.stderr
    (launch,) = json.loads((tmp_path / "counted.json").read_text())["launches"]
    assert launch["counters"]["global_stores"]["requests"] == 2 and "global_loads" not in launch["counters"]
    assert launch["counters"]["local_stores"]["requests"] >= 2 * 16


@pytest.mark.slow
@pytest.mark.parametrize("file", ["a.cu", "a.py"])
def test_count_tells_what_a_kernel_asks_for(simt, tmp_path, file):
    """Does count print a table with the kernel and write its launches?"""
    done = simt(
        "count",
        "--device",
        "H200",
        "--json",
        "counted.json",
        file,
        files={"a.cu": SOUND, "a.py": MODEL.replace("PAST", "")},
    )
    assert done.returncode == 0 and "fill" in done.stderr
    assert len(json.loads((tmp_path / "counted.json").read_text())["launches"]) == 1


RUNS = """
#include <cstdio>
__global__ void nothing() {}
int main(int argc, char** argv) {
  if (argc > 1) nothing<<<1, 32>>>();
  FILE* runs = fopen("runs", "a");
  fputs("run\\n", runs);
  fclose(runs);
  return cudaDeviceSynchronize();
}
"""


def test_a_program_without_a_kernel_runs_once(simt, tmp_path):
    """Is a program run again in other orders of its threads only if it has launched a kernel?"""
    for words, runs in ([], 1), (["kernel"], 1 + 1 + 4):
        simt("check", "a.cu", *words, files={"a.cu": RUNS})
        assert (tmp_path / "runs").read_text() == "run\n" * runs
