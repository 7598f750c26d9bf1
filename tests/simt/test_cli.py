"""python -m simt: does each command do what its help says, and is every failure one clear sentence with its exit status?"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

CHECK = """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { fprintf(stderr, "line %d: %s\\n", __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)
"""
FILL = """
__global__ void fill(int* p, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = value;  // here
}
"""
SOUND = CHECK + FILL + """
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100, last;
  int* p;
  CHECK(cudaMalloc(&p, n * sizeof(int)));
  fill<<<(n + 31) / 32, 32>>>(p, n, 7);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&last, p + n - 1, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d elements, the last is %d\\n", n, last);
  CHECK(cudaFree(p));
  return argc > 2 ? atoi(argv[2]) : 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def compiled_before(tmp_path_factory):
    """What simt compiles once for itself: tests are about what comes after."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "a.cu").write_text("int main() { }\n")
    (folder / "a.py").write_text("")
    for words in (["run", "a.cu"], ["check", "a.cu"], ["count", "a.cu"], ["check", "a.py"]):
        subprocess.run([sys.executable, "-m", "simt", *words], cwd=folder, capture_output=True, check=False, timeout=240)


@pytest.fixture
def simt(tmp_path):
    """Calls the command line in a folder of its own: simt("run", "a.cu", files={"a.cu": text})."""

    def call(*words, files=None, **options):
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        environment = {**os.environ, **options.pop("environment", {})}
        done = subprocess.run(
            [sys.executable, "-m", "simt", *words], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=240, env=environment, **options
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return call


def line_of(source: str, mark: str) -> int:
    return next(n for n, line in enumerate(source.split("\n"), 1) if mark in line)


# ---- run ----


def test_status_output_and_arguments_are_the_programs(simt):
    """Are stdout, the arguments and the exit status those of main, with nothing added?"""
    done = simt("run", "a.cu", files={"a.cu": SOUND})
    assert (done.stdout, done.returncode) == ("100 elements, the last is 7\n", 0)
    done = simt("run", "a.cu", "33", "42")
    assert (done.stdout, done.stderr, done.returncode) == ("33 elements, the last is 7\n", "", 42)
    done = simt("run", "a.cu", "--", "-5")  # what follows FILE is passed on, dashes too
    assert "Usage" not in done.stderr


def test_an_unchanged_program_starts_fast(simt):
    """Is an unchanged program neither compiled again nor kept waiting for torch?"""
    simt("run", "a.cu", files={"a.cu": SOUND})
    start = time.perf_counter()
    assert simt("run", "a.cu").returncode == 0
    assert time.perf_counter() - start < 1.5


WATCHED = """
import sys
def note(event, about):
    if event == "import" and about[0] in ("torch", "simt.program"):
        with open({log!r}, "a") as log:
            log.write(about[0] + "\\n")
sys.addaudithook(note)
"""


@pytest.mark.parametrize("command, processes", [("run", 1), ("check", 5), ("count", 1)])
def test_a_program_needs_no_torch(simt, tmp_path, command, processes):
    """Does no process import torch for a program, the four that try other orders included? And is the watch awake: a script does?"""
    log = tmp_path / "imported"
    watch = {"sitecustomize.py": WATCHED.format(log=str(log)), "a.cu": SOUND, "a.py": ""}
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = simt(command, "a.cu", files=watch, environment=environment)
    assert (done.stdout, done.returncode) == ("100 elements, the last is 7\n", 0), done.stderr
    assert log.read_text().split() == ["simt.program"] * processes
    if command == "check":
        simt(command, "a.py", environment=environment)
        assert "torch" in log.read_text().split()


def test_main_may_take_no_arguments_and_return_nothing(simt):
    """Does main() work in the form without arguments, and is its missing return 0?"""
    assert simt("run", "a.cu", files={"a.cu": "#include <cstdio>\nint main() { puts(\"hello\"); }\n"}).returncode == 0


def test_standard_input_reaches_the_program(simt):
    """Can the program read what is piped to it?"""
    source = "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; return 0; }\n"
    assert simt("run", "a.cu", files={"a.cu": source}, input="20 22").stdout == "42"


ENDS = """
#include <cstdio>
#include <cstdlib>
#include <iostream>
struct Noisy { const char* name; ~Noisy() { printf("%s destroyed\\n", name); } };
static Noisy global{"global"};
void deep(int n) { if (n == 0) { std::cout << "leaving "; exit(3); } Noisy local{"local"}; deep(n - 1); }
int main() { atexit([] { printf("atexit\\n"); }); Noisy of_main{"main's"}; deep(3); }
"""


def test_exit_ends_the_program_as_in_a_process_of_its_own(simt):
    """Does exit() deep in a call run atexit's functions and the destructors of globals, not of locals, and flush?"""
    done = simt("run", "a.cu", files={"a.cu": ENDS})
    assert (done.stdout, done.returncode) == ("leaving atexit\nglobal destroyed\n", 3)


@pytest.mark.parametrize("call, status, printed", [("_exit(7)", 7, ""), ("std::_Exit(8)", 8, ""), ("quick_exit(9)", 9, ""), ("throw 1", 134, "before\n")])
def test_other_ways_out(simt, call, status, printed):
    """Do the ways out that flush nothing, and an exception that nobody catches, end the program with their status?"""
    source = f'#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\nint main() {{ printf("before\\n"); {call}; }}\n'
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == status
    assert done.stdout in ("before\n", "") and ("exception" in done.stderr) == (call == "throw 1")


HEADER = """#pragma once
#include "more/constants.h"
template <class T> __global__ void twice(T* p, int n) {
  __shared__ T s[FACTOR * 16];
  int i = threadIdx.x;
  s[i] = p[i];
  __syncthreads();
  if (i < n) p[i] = FACTOR * s[i] + ADDED;
}
inline void launch_twice(int* p, int n) { twice<<<1, 32>>>(p, n); }
"""


def test_files_beside_the_program(simt):
    """Are headers with kernels beside FILE found and compiled, also through each other, by -I, and with -D?"""
    main = CHECK + '#include "twice.cuh"\n#include <elsewhere.h>\nint main() {\n  int* p, h[32]; for (int i = 0; i < 32; i++) h[i] = i;\n' + (
        "  CHECK(cudaMalloc(&p, sizeof h)); CHECK(cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice)); launch_twice(p, 32);\n"
        "  CHECK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost)); CHECK(cudaFree(p));\n"
        '  printf("%d %d\\n", h[5], elsewhere()); }\n'
    )
    files = {"a/main.cu": main, "a/twice.cuh": HEADER, "a/more/constants.h": "#define FACTOR 2\n", "b/elsewhere.h": "inline int elsewhere() { return 9; }\n"}
    done = simt("run", "-I", "b", "-D", "ADDED=100", "a/main.cu", files=files)
    assert (done.stdout, done.stderr) == ("110 9\n", "")
    changed = simt("run", "-I", "b", "-D", "ADDED=100", "a/main.cu", files={"a/more/constants.h": "#define FACTOR 3\n"})
    assert changed.stdout == "115 9\n"


ORDER = CHECK + """
__global__ void say(int n) { printf("kernel %d thread %d\\n", n, threadIdx.x); }
int main() {
  int h = 0, *d; CHECK(cudaMalloc(&d, 4)); CHECK(cudaMemset(d, 0, 4));
  say<<<1, 2>>>(1); printf("host 1\\n"); say<<<1, 2>>>(2); printf("host 2\\n");
  CHECK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
  printf("host 3\\n"); say<<<1, 1>>>(3);
  CHECK(cudaDeviceSynchronize());
  printf("end\\n"); CHECK(cudaFree(d));
  if (SAY_LAST) say<<<1, 1>>>(4);
}
"""
# What an H200 printed for it (2026-11-21): kernels' lines come where the host waits for them.
ORDER_ON_H200 = """host 1
host 2
kernel 1 thread 0
kernel 1 thread 1
kernel 2 thread 0
kernel 2 thread 1
host 3
kernel 3 thread 0
end
"""


def test_printf_of_kernels_and_host_in_order(simt):
    """Do lines of kernels and of the host come in the order in which a GPU shows them, and is lost output told?"""
    done = simt("run", "-DSAY_LAST=0", "a.cu", files={"a.cu": ORDER})
    assert (done.stdout, done.stderr) == (ORDER_ON_H200, "")
    done = simt("run", "-DSAY_LAST=1", "a.cu")
    assert done.stdout == ORDER_ON_H200 + "kernel 4 thread 0\n" and "would be lost on a GPU" in done.stderr and done.returncode == 0


CODES = CHECK + """
__device__ int array[16];
__global__ void null(int* p) { *p = 1; }
__global__ void misaligned(char* p) { *(float4*)(p + 4) = make_float4(0, 0, 0, 0); }
__global__ void asserting(int x) { assert(x == 3); }
#define T(call) printf("%d ", (int)(call))
int main(int argc, char** argv) {
  int *d, *none, h[16] = {}; void* symbol; T(cudaMalloc(&d, 64)); T(cudaMemset(d, 0, 64));
  T(cudaMemcpy(h, d, 64, cudaMemcpyHostToDevice)); T(cudaMemcpy(d, h, 64, cudaMemcpyDeviceToHost)); T(cudaMemcpy(d, h, 128, cudaMemcpyHostToDevice));
  T(cudaGetLastError()); T(cudaGetLastError());
  T(cudaMemcpy(d, h, 64, cudaMemcpyDefault)); T(cudaMemset(h, 0, 64)); T(cudaMemset(d, 0, 1 << 23)); T(cudaMemcpy(h, nullptr, 4, cudaMemcpyDeviceToHost));
  T(cudaMemcpy(array, h, 64, cudaMemcpyHostToDevice)); T(cudaMemcpyToSymbol(array, h, 64)); T(cudaMemcpyToSymbol(array, h, 128));
  T(cudaGetSymbolAddress(&symbol, array)); T(cudaMemset(symbol, 0, 64)); T(cudaMemcpy(h, h, 4, cudaMemcpyDeviceToHost)); T(cudaMemcpy(h, h, 4, cudaMemcpyHostToHost));
  T(cudaFree(h)); T(cudaFree(nullptr)); T(cudaMalloc(&none, 0)); T(cudaSetDevice(7)); puts("");
  if (argc > 1 && *argv[1] == 'n') null<<<1, 1>>>(nullptr);
  if (argc > 1 && *argv[1] == 'm') misaligned<<<1, 1>>>((char*)d);
  if (argc > 1 && *argv[1] == 'a') asserting<<<1, 1>>>(4);
  T(cudaDeviceSynchronize()); T(cudaGetLastError()); T(cudaGetLastError()); T(cudaMalloc(&none, 4)); T(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost)); T(cudaFree(d));
}
"""
# What an H200 gave (2026-11-21).
CODES_ON_H200 = "0 0 1 1 1 1 0 0 1 1 1 1 0 1 0 0 1 0 1 0 0 101 \n"


@pytest.mark.parametrize("kernel, after", [("n", "700 700 0 700 700 700 "), ("m", "716 716 0 716 716 716 "), ("a", "710 710 0 710 710 710 ")])
def test_calls_return_the_errors_that_a_gpu_returns(simt, kernel, after):
    """Do refused copies, and calls after a kernel has failed, return what they returned on an H200?"""
    done = simt("run", "a.cu", kernel, files={"a.cu": CODES})
    assert done.stdout == CODES_ON_H200 + after


def test_a_refused_copy_is_explained(simt):
    """Is the sentence about a copy in the wrong direction there, with its line, where CUDA says "invalid argument"?"""
    source = SOUND.replace("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice")
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == 1 and "invalid argument" in done.stderr
    assert f"its target is no memory of the device's (a.cu, line {line_of(source, 'cudaMemcpyHostToDevice')})." in done.stderr


def test_a_failing_kernel_is_explained(simt):
    """Does the program see CUDA's error, and the user the thread, the line and the array?"""
    source = SOUND.replace("p[i] = value", "p[i - 1000000000ll] = value")
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == 1 and "an illegal memory access was encountered" in done.stderr
    assert "Thread (" in done.stderr and f"(kernel fill, a.cu line {line_of(source, '// here')})" in done.stderr


def test_a_launch_that_nobody_asked_about_is_told(simt):
    """Is a refused launch told although the program goes on and returns 0?"""
    source = FILL + "int main() { fill<<<1, 2048>>>(nullptr, 0, 0); return 0; }\n"
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == 0 and "Kernel fill was not launched: its block (2048, 1, 1) has 2,048 threads" in done.stderr


CRASHES = {
    "int* p = nullptr; *p = argc;  // here": (139, "through a null pointer (a.cu, line"),
    "memset((void*)0x5000000000ull, argc, 64);  // here": (139, "at an address that it does not own (a.cu, line"),
    "return endless(argc);  // here": (139, "ran out of stack"),
    "abort();  // here": (134, "abort()"),
    "return 5 / (argc - 1);  // here": (136, "divides an integer by zero (a.cu, line"),
    "*(volatile int*)0x1234567812345678 = argc;  // here": (139, "at an address that it does not own (a.cu, line"),
    "assert(argc == 5);  // here": (134, "The assertion `argc == 5` in line"),
    "std::vector<int>(3).at(argc + 3);  // here": (134, "std::out_of_range"),
}


@pytest.mark.parametrize("statement", CRASHES)
def test_a_crash_of_the_host_code_is_told(simt, statement):
    """Is a crash outside of kernels one sentence, with the line where there is one, and the status that a shell shows?"""
    status, sentence = CRASHES[statement]
    head = "#include <cassert>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\nvolatile int zero;\nint endless(int n) { volatile int a[100]; a[n % 100] = n; return endless(n + 1) + a[zero]; }\n"
    source = head + f"int main(int argc, char** argv) {{\n  {statement}\n  return 0;\n}}\n"
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == status and sentence in done.stderr, done.stderr
    if sentence.endswith("(a.cu, line"):
        assert f"(a.cu, line {line_of(source, '// here')})" in done.stderr


LOOPS = {"host": "printf(\"started\\n\"); fflush(stdout); for (volatile int i = 0; ; i = 1) { }", "kernel": "printf(\"started\\n\"); fflush(stdout); spin<<<1, 32>>>();"}


@pytest.mark.parametrize("where", LOOPS)
def test_ctrl_c_ends_it(tmp_path, where):
    """Does Ctrl-C end a loop of the host's and one in a kernel, with status 130?"""
    (tmp_path / "a.cu").write_text(f"#include <cstdio>\n__global__ void spin() {{ for (volatile int i = 0; ; i = 1) {{ }} }}\nint main() {{ {LOOPS[where]} }}\n")
    process = subprocess.Popen([sys.executable, "-m", "simt", "run", "a.cu"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in said


def test_a_reader_that_leaves_is_no_error(tmp_path):
    """Does `simt run a.cu | head -1` end quietly?"""
    (tmp_path / "a.cu").write_text('#include <cstdio>\nint main() { for (int i = 0; i < 1000000; i++) printf("%d\\n", i); }\n')
    done = subprocess.run(f"{sys.executable} -m simt run a.cu | head -1", shell=True, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("0\n", "")
    done = subprocess.run(f"{sys.executable} -m simt --help | true", shell=True, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""


def test_the_device_can_be_chosen(simt):
    """Do --device and SIMT_DEVICE change what cudaGetDeviceProperties says and what __CUDA_ARCH__ is?"""
    source = CHECK + '__device__ int arch() { return __CUDA_ARCH__; }\n__global__ void tell(int* p) { *p = arch(); }\nint main() { cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0)); int *d, a; CHECK(cudaMalloc(&d, 4)); tell<<<1, 1>>>(d); CHECK(cudaMemcpy(&a, d, 4, cudaMemcpyDeviceToHost)); printf("%s %d %d", p.name, p.multiProcessorCount, a); }\n'  # fmt: skip
    assert simt("run", "a.cu", files={"a.cu": source}).stdout == "T4 40 750"
    assert simt("run", "--device", "h200", "a.cu").stdout == "H200 132 900"
    assert simt("run", "a.cu", environment={"SIMT_DEVICE": "A100"}).stdout == "A100 108 800"


def test_options_reach_the_launch(simt):
    """Do --schedule, --threads and --seconds count?"""
    source = CHECK + 'int main(int n, char**); __global__ void k(int* p) { printf("%d ", threadIdx.x); if (p) for (volatile int i = 0; ; i = 1) { } }\nint main(int argc, char**) { k<<<1, 4>>>(argc > 1 ? &argc : nullptr); CHECK(cudaDeviceSynchronize()); }\n'  # fmt: skip
    assert simt("run", "--threads", "1", "a.cu", files={"a.cu": source}).stdout == "0 1 2 3 "
    assert simt("run", "--schedule", "reverse", "a.cu").stdout == "3 2 1 0 "
    done = simt("run", "--seconds", "0.2", "a.cu", "endless")
    assert done.returncode == 1 and "did not end within the time limit" in done.stderr and "the launch timed out" in done.stderr


# ---- what is refused, and with which status ----

NOT_COMPILED = CHECK + "__global__ void k(float* p) {\n  p[0] = undeclared;  // first\n  int q = p;  // second\n}\nint main() { k<<<1, 1>>>(nullptr); }\n"


@pytest.mark.parametrize("command", ["run", "check", "count"])
@pytest.mark.parametrize(
    "name, content, status, sentence",
    [
        ("missing.cu", None, 2, "missing.cu: there is no such file."),
        ("folder.cu", "folder", 2, "folder.cu is a folder"),
        ("empty.cu", " \n\n", 2, "empty.cu is empty."),
        ("binary.cu", "\x7fELF\0\0", 2, "binary.cu is no text file."),
        ("missing.py", None, 2, "missing.py: there is no such file."),
        ("empty.py", "", 2, "empty.py is empty."),
        ("bad.py", "x = 1\nif x\n", 3, "bad.py, line 2: expected ':'"),
        ("nomain.cu", FILL, 3, "nomain.cu: There is no main()"),
        ("error.cu", NOT_COMPILED, 3, f"error.cu, line {line_of(NOT_COMPILED, '// first')}: ‘undeclared’ was not declared"),
        ("ptx.cu", "__global__ void k() {\n  asm(\"ret;\");\n}\nint main() { }\n", 3, "ptx.cu, line 2: `ret`: this PTX instruction can't run on the CPU"),
        ("torch.cu", "#include <torch/extension.h>\nint main() { }\n", 3, "torch.cu, line 1: #include <torch/extension.h>: a program has no torch"),
        ("undefined.cu", "void other();\nint main() { other(); }\n", 3, "`other()` is declared and called, but no source defines it"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(simt, tmp_path, command, name, content, status, sentence):
    """Is each kind of bad input named by one sentence on stderr, with nothing on stdout and its own status?"""
    if command != "run" and status == 3 and name in ("ptx.cu", "undefined.cu"):
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
    done = simt("run", "a.cu", files={"a.cu": '#include "h.cuh"\nint main() { }\n', "h.cuh": "#pragma once\n\n__device__ int f() { return nothing; }\n"})
    assert done.returncode == 3 and done.stderr.startswith("simt: h.cuh, line 3: ‘nothing’ was not declared")


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["run"], "Missing argument 'FILE'"),
        (["run", "--device", "B9000", "a.cu"], "B9000"),
        (["run", "--schedule", "sideways", "a.cu"], "neither forward nor reverse nor a whole number"),
        (["run", "--threads", "0", "a.cu"], "--threads"),
        (["run", "--seconds", "-1", "a.cu"], "--seconds"),
        (["run", "--nonsense", "a.cu"], "No such option"),
        (["walk", "a.cu"], "No such command"),
        (["check", "--json", "missing/folder.json", "a.cu"], "missing/folder.json: No such file or directory"),
        (["check", "-D", "X=1", "a.py"], "-I and -D are for FILE.cu"),
        (["check", "--json", "a.cu", "a.cu"], "--json a.cu: the JSON would be written over a source"),
        (["count", "--json", "a.py", "other.cu"], "--json a.py: the JSON would be written over a source"),
    ],
)
def test_wrong_usage_is_status_2(simt, tmp_path, words, sentence):
    """Does each wrong use say what is wrong?"""
    done = simt(*words, files={"a.cu": SOUND, "a.py": "pass\n"})
    assert done.returncode == 2 and sentence in done.stderr
    assert (tmp_path / "a.cu").read_text() == SOUND


@pytest.mark.parametrize("file", ["a.cu", "a.py"])
@pytest.mark.parametrize("threads", ["abc", "0", "-1", "2.5"])
def test_a_number_of_threads_that_is_none_is_status_2(simt, file, threads):
    """Is a variable that holds no number of threads one sentence that names it, and is --threads heard instead of it?"""
    done = simt("run", file, files={"a.cu": SOUND, "a.py": "pass\n"}, environment={"SIMT_THREADS": threads})
    assert done.returncode == 2 and f"SIMT_THREADS is '{threads}': set it to a whole number from 1 on" in done.stderr
    if threads == "abc":
        assert simt("run", "--threads", "2", file, environment={"SIMT_THREADS": threads}).returncode == 0


@pytest.mark.parametrize("words", [["check", "--json", "/dev/full", "a.cu"], ["count", "--json", "/dev/full", "a.cu"], ["check", "--json", "/dev/full", "a.py"]])
def test_json_that_cannot_be_written_is_status_4(simt, words):
    """Is what was found told although the JSON found no room, and is the status not that of a finding?"""
    done = simt(*words, files={"a.cu": PAST_THE_END, "a.py": MODEL.replace("PAST", "+ 1")})
    assert done.returncode == 4 and done.stderr.splitlines()[-1] == "simt: The JSON cannot be written: No space left on device."
    assert "check" not in words or "out_of_bounds" in done.stderr


@pytest.mark.parametrize("words", [["check", "--json", "-", "a.cu"], ["run", "a.py"]])
def test_standard_output_that_cannot_be_written_is_status_4(tmp_path, words):
    """The same of what is printed: one sentence, and none of Python's own at its end?"""
    (tmp_path / "a.cu").write_text(SOUND)
    (tmp_path / "a.py").write_text("print(1)\n")
    with open("/dev/full", "w") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}  # or print itself raises it in the script
        command = [sys.executable, "-m", "simt", *words]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 4 and done.stderr.splitlines()[-1].endswith("cannot be written: No space left on device.")
    assert done.stderr.count("cannot be written") == 1 and "Traceback" not in done.stderr and "ignored" not in done.stderr


@pytest.mark.parametrize("file", ["a.cu", "a.py"])
def test_no_compiler_and_no_cache_are_status_4(simt, tmp_path, file):
    """Is a machine without compiler, or without a place for built programs, told apart from a bad program?"""
    files = {"a.cu": SOUND, "a.py": SCRIPT}
    done = simt("run", file, files=files, environment={"CXX": "/nowhere/g++", "SIMT_CACHE": str(tmp_path / "cache")})
    assert done.returncode == 4 and "CXX is `/nowhere/g++`" in done.stderr
    (tmp_path / "file").write_text("")
    done = simt("run", file, environment={"SIMT_CACHE": str(tmp_path / "file" / "cache")})
    assert done.returncode == 4 and "set SIMT_CACHE to a folder" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["check", "--help"], ["count", "-h"]])
def test_help_has_examples_and_exit_statuses(simt, words):
    """Does every help show how to call it and, for a command, what its exit status means?"""
    done = simt(*words)
    assert done.returncode == 0 and "Examples:" in done.stdout and "python -m simt" in done.stdout
    if len(words) == 2:
        assert all(f"{status}  " in done.stdout for status in (2, 3, 4, 130, *([] if words[0] == "run" else [5])))


# ---- Python files ----

SCRIPT = textwrap.dedent(
    """
    import sys
    import torch
    from torch.utils.cpp_extension import load_inline
    CUDA = '''
    __global__ void fill(float* p, int n, float value) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) p[i] = value;
    }
    torch::Tensor filled(torch::Tensor x, double value) {
      TORCH_CHECK(x.is_cuda());
      auto y = torch::empty_like(x);
      fill<<<(y.numel() + 31) / 32, 32>>>(y.data_ptr<float>(), y.numel() PAST, value);
      return y;
    }
    '''
    module = load_inline("filled", "torch::Tensor filled(torch::Tensor x, double value);", CUDA, functions=["filled"])
    """
)
MODEL = SCRIPT + textwrap.dedent(
    """
    class ModelNew(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value
        def forward(self, x):
            y = module.filled(x, self.value)
            print(y.sum().item())
            return y
    def get_init_inputs():
        return [2.0]
    def get_inputs():
        return [torch.zeros(10, device="cuda")]
    """
)


def test_a_script_runs_as_main(simt):
    """Is a script __main__, with its arguments, its folder on the path, its exit status, and "cuda" meaning the CPU?"""
    text = SCRIPT.replace("PAST", "") + textwrap.dedent(
        """
        import beside
        if __name__ == "__main__":
            x = torch.zeros(beside.N, device="cuda")
            y = module.filled(x.cuda(), 3)
            torch.cuda.synchronize()
            print(sys.argv[1:], y.sum().item(), y.is_cuda)
            sys.exit(5)
        """
    )
    done = simt("run", "a.py", "one", "--two", files={"a.py": text, "beside.py": "N = 4\n"})
    assert (done.stdout, done.returncode) == ("['one', '--two'] 12.0 True\n", 5), done.stderr


def test_a_model_without_a_main_part_is_called(simt):
    """Does a KernelBench file run its ModelNew on its own inputs?"""
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "")})
    assert (done.stdout, done.returncode) == ("20.0\n", 0), done.stderr
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "") + "\nif __name__ == '__main__':\n    print('mine')\n"})
    assert done.stdout == "mine\n"


def test_what_a_script_raises_is_told_with_its_line(simt):
    """Is an exception one sentence with the script's line, a failing kernel its sentence, a bad kernel its own line?"""
    done = simt("run", "a.py", files={"a.py": "def f():\n    return 1 / 0  # here\nf()\n"})
    assert done.returncode == 1 and done.stderr == "simt: a.py, line 2: ZeroDivisionError: division by zero\n"
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "").replace("p[i] =", "p[i + 1000000000ll] =")})
    assert done.returncode == 1 and "(kernel fill, cuda_sources line" in done.stderr
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "+ undeclared")})
    assert done.returncode == 3 and done.stderr.startswith("simt: cuda_sources, line")


SAMPLE = """
#include <stdio.h>
#include <cuda_runtime.h>
#include <helper_functions.h>
#include <helper_cuda.h>
template <int SIZE> __global__ void increase(float *p, int n) {
  int i = blockIdx.x * SIZE + threadIdx.x;
  if (i < n) p[i] += 1.f;
}
int main(int argc, char **argv) {
  int n = 1000;
  if (checkCmdLineFlag(argc, (const char **)argv, "n")) n = getCmdLineArgumentInt(argc, (const char **)argv, "n");
  int device = findCudaDevice(argc, (const char **)argv);
  cudaDeviceProp properties;
  checkCudaErrors(cudaGetDeviceProperties(&properties, device));
  float *h, *d;
  checkCudaErrors(cudaMallocHost(&h, n * sizeof(float)));
  for (int i = 0; i < n; i++) h[i] = i;
  checkCudaErrors(cudaMalloc(reinterpret_cast<void **>(&d), n * sizeof(float)));
  cudaStream_t stream;
  checkCudaErrors(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  StopWatchInterface *timer = NULL;
  sdkCreateTimer(&timer);
  sdkStartTimer(&timer);
  checkCudaErrors(cudaMemcpyAsync(d, h, n * sizeof(float), cudaMemcpyHostToDevice, stream));
  increase<256><<<(n + 255) / 256, 256, 0, stream>>>(d, n);
  getLastCudaError("increase");
  checkCudaErrors(cudaMemcpyAsync(h, d, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  checkCudaErrors(cudaStreamSynchronize(stream));
  sdkStopTimer(&timer);
  printf("%g %d\\n", h[n - 1], sdkGetTimerValue(&timer) > 0);
  sdkDeleteTimer(&timer);
  checkCudaErrors(cudaStreamDestroy(stream));
  checkCudaErrors(cudaFreeHost(h));
  checkCudaErrors(cudaFree(d));
  checkCudaErrors(cudaSetDevice(3));
}
"""


def test_what_nvidias_samples_include_is_there(simt):
    """Does a program with the samples' helper_cuda.h and helper_functions.h run, with their arguments and their error texts?"""
    done = simt("run", "a.cu", "-n=500", files={"a.cu": SAMPLE})
    assert done.stdout == 'GPU Device 0: "T4" with compute capability 7.5\n\n500 1\n'
    assert done.returncode == 1 and 'code=101(cudaErrorInvalidDevice) "cudaSetDevice(3)"' in done.stderr


# ---- check and count ----

PAST_THE_END = SOUND.replace("if (i < n)", "if (i <= n)")


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
    assert done.returncode == 1 and "60 elements, the last is 7\n" == done.stdout and "out_of_bounds" in done.stderr
    finding = json.loads((tmp_path / "found.json").read_text())["findings"][0]
    expected = {"check": "out_of_bounds", "kernel": "fill", "source": name, "line": line_of(PAST_THE_END, "// here"), "array": "p", "index": 60}
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


def test_check_looks_at_other_orders_but_not_at_times(simt):
    """Is output that depends on the order of threads found, and are lines that differ anyway, such as times, passed over?"""
    source = SOUND.replace('printf("%d elements', 'printf("%lld\\n", (long long)clock()); printf("%d elements').replace("#include <cstdio>", "#include <cstdio>\n#include <ctime>")
    done = simt("check", "a.cu", files={"a.cu": source})
    assert done.returncode == 0, done.stderr
    done = simt("check", "a.cu", files={"a.cu": source.replace("p[i] = value;", "atomicExch(p + n - 1, i);")})
    assert done.returncode == 1 and "schedule" in done.stderr


def test_check_finds_the_host_in_device_memory(simt, tmp_path):
    """Is reading cudaMalloc's memory on the host, which a GPU answers by a crash, found? And not so with managed memory?"""
    source = CHECK + FILL + """
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
    done = simt("check", "--json", "found.json", "a.cu", files={"a.cu": source})
    (finding,) = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert done.returncode == 1 and (finding["check"], finding["line"]) == ("illegal_address", line_of(source, "// host"))
    assert "only kernels and cudaMemcpy reach" in finding["message"]
    done = simt("check", "a.cu", "managed")
    assert (done.stdout, done.returncode) == ("1393", 0), done.stderr


def test_kernels_launched_through_pointers_have_their_names(simt, tmp_path):
    """Is a kernel that is launched through a variable told by its own name, template arguments and parameters?"""
    source = SOUND.replace("__global__ void fill", "template <int EXTRA> __global__ void fill").replace("i < n", "i < n + EXTRA").replace("fill<<<", "(version.kernel)<<<")
    source = source.replace("int main", "struct Version { void (*kernel)(int*, int, int); };\nint main").replace("int* p;", "int* p; Version version{fill<1>};")
    for text in (source, source.replace("(version.kernel)<<<", "chosen<<<").replace("int* p;", "int* p; auto chosen = fill<1>;")):
        simt("check", "--json", "found.json", "a.cu", files={"a.cu": text})
        (finding,) = json.loads((tmp_path / "found.json").read_text())["findings"]
        assert (finding["check"], finding["kernel"], finding["array"]) == ("out_of_bounds", "fill<1>", "p")


def test_check_reports_after_exit_and_after_a_crash(simt):
    """Is what was found told although the program calls exit or crashes, and is a crash alone status 1?"""
    for end in ("exit(0);", "*(volatile int*)nullptr = 1;"):
        done = simt("check", "a.cu", "60", files={"a.cu": PAST_THE_END.replace("return argc", f"fflush(stdout); {end} return argc")})
        assert done.returncode == 1 and "out_of_bounds" in done.stderr and done.stdout == "60 elements, the last is 7\n"
    done = simt("check", "a.cu", files={"a.cu": "int main() {\n  *(volatile int*)nullptr = 1;\n}\n"})
    assert done.returncode == 1 and "illegal_address: a.cu, line 2: " in done.stderr and "through a null pointer" in done.stderr


def test_check_of_a_model(simt):
    """Does `simt check FILE.py` call the model and name its defect?"""
    done = simt("check", "a.py", files={"a.py": MODEL.replace("PAST", "+ 1")})
    assert done.returncode == 1 and "out_of_bounds" in done.stderr and "cuda_sources" in done.stderr
    done = simt("check", "a.py", files={"a.py": MODEL.replace("PAST", "")})
    assert done.returncode == 0, done.stderr


MAIN_PART = "\nif __name__ == '__main__':\n    pass\n"
UNLAUNCHED = {
    "no inputs": (MODEL.partition("def get_inputs")[0], "a.py defines ModelNew and says nothing of its inputs. Add get_inputs()"),
    "a main part": (MODEL + MAIN_PART, 'a.py has an `if __name__ == "__main__":` part, and that launches none.'),
    "a model without kernels": (MODEL.replace("module.filled(x, self.value)", "x"), "ModelNew's forward launches none for what get_inputs() returns."),
    "neither": ("print(1)\n", "nothing in a.py launches one. Add ModelNew and get_inputs(), or an `if __name__"),
}


@pytest.mark.parametrize("name", UNLAUNCHED)
def test_a_script_that_launches_nothing_is_not_called_clean(simt, tmp_path, name):
    """Does check say that it had no kernel to check, and what the file lacks, in text and JSON, with a status of its own?"""
    text, why = UNLAUNCHED[name]
    done = simt("check", "--json", "found.json", "a.py", files={"a.py": text.replace("PAST", "+ 1")})
    assert done.returncode == 5 and f"No kernel was launched, so none was checked: {why}" in done.stderr
    assert "No check found anything" not in done.stderr
    assert why in json.loads((tmp_path / "found.json").read_text())["said"][0]


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


@pytest.mark.parametrize("file", ["a.cu", "a.py"])
def test_count_tells_what_a_kernel_asks_for(simt, tmp_path, file):
    """Does count print a table with the kernel and write its launches?"""
    done = simt("count", "--device", "H200", "--json", "counted.json", file, files={"a.cu": SOUND, "a.py": MODEL.replace("PAST", "")})
    assert done.returncode == 0 and "fill" in done.stderr
    assert len(json.loads((tmp_path / "counted.json").read_text())["launches"]) == 1
