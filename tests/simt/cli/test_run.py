"""python -m simt run: does a program or script run as it would on its own, and is every failure one clear sentence?"""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.simt.cli.sources import CHECK, FILL, MODEL, SCRIPT, SOUND, line_of


@pytest.mark.slow
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
    if event == "import" and about[0] in ("torch", "simt.runtime.programs"):
        with open({log!r}, "a") as log:
            log.write(about[0] + "\\n")
sys.addaudithook(note)
"""


@pytest.mark.slow
@pytest.mark.parametrize("command, processes", [("run", 1), ("check", 5), ("count", 1)])
def test_a_program_needs_no_torch(simt, tmp_path, command, processes):
    """Does no process import torch for a program, the four that try other orders included? And is the watch awake: a
    script does?
    """
    log = tmp_path / "imported"
    watch = {"sitecustomize.py": WATCHED.format(log=str(log)), "a.cu": SOUND, "a.py": ""}
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = simt(command, "a.cu", files=watch, environment=environment)
    assert (done.stdout, done.returncode) == ("100 elements, the last is 7\n", 0), done.stderr
    assert log.read_text().split() == ["simt.runtime.programs"] * processes
    if command == "check":
        simt(command, "a.py", environment=environment)
        assert "torch" in log.read_text().split()


@pytest.mark.parametrize("words", [["run", "a.cu"], ["check", "a.cu"], ["count", "a.py"]])
def test_without_torch_the_reason_is_one_sentence(simt, tmp_path, words):
    """Does a Python without torch get the reason and what to do, and is help printed all the same?"""
    files = {"sitecustomize.py": 'import sys\nsys.modules["torch"] = None\n', "a.cu": SOUND, "a.py": ""}
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = simt(*words, files=files, environment=environment)
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.startswith("simt: torch is not installed in this Python") and done.stderr.count("\n") == 1
    assert simt("--help", environment=environment).returncode == 0


def test_main_may_take_no_arguments_and_return_nothing(simt):
    """Does main() work in the form without arguments, and is its missing return 0?"""
    assert simt("run", "a.cu", files={"a.cu": '#include <cstdio>\nint main() { puts("hello"); }\n'}).returncode == 0


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


@pytest.mark.parametrize(
    "call, status, printed",
    [("_exit(7)", 7, ""), ("std::_Exit(8)", 8, ""), ("quick_exit(9)", 9, ""), ("throw 1", 134, "before\n")],
)
def test_other_ways_out(simt, call, status, printed):
    """Do the ways out that flush nothing, and an exception that nobody catches, end the program with their status?"""
    source = (
        f'#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\nint main() {{ printf("before\\n"); {call}; }}\n'
    )
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
    main = (
        CHECK + '#include "twice.cuh"\n#include <elsewhere.h>\nint main() {\n'
        "  int* p, h[32]; for (int i = 0; i < 32; i++) h[i] = i;\n"
        + (
            "  CHECK(cudaMalloc(&p, sizeof h)); CHECK(cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice)); "
            "launch_twice(p, 32);\n"
            "  CHECK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost)); CHECK(cudaFree(p));\n"
            '  printf("%d %d\\n", h[5], elsewhere()); }\n'
        )
    )
    files = {
        "a/main.cu": main,
        "a/twice.cuh": HEADER,
        "a/more/constants.h": "#define FACTOR 2\n",
        "b/elsewhere.h": "inline int elsewhere() { return 9; }\n",
    }
    done = simt("run", "-I", "b", "-D", "ADDED=100", "a/main.cu", files=files)
    assert (done.stdout, done.stderr) == ("110 9\n", "")
    changed = simt("run", "-I", "b", "-D", "ADDED=100", "a/main.cu", files={"a/more/constants.h": "#define FACTOR 3\n"})
    assert changed.stdout == "115 9\n"


ORDER = (
    CHECK
    + """
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
)
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
    assert (
        done.stdout == ORDER_ON_H200 + "kernel 4 thread 0\n"
        and "On a GPU the last lines that kernels printed would be lost." in done.stderr
        and done.returncode == 0
    )


CODES = (
    CHECK + """
__device__ int array[16];
__global__ void null(int* p) { *p = 1; }
__global__ void misaligned(char* p) { *(float4*)(p + 4) = make_float4(0, 0, 0, 0); }
__global__ void asserting(int x) { assert(x == 3); }
#define T(call) printf("%d ", (int)(call))
int main(int argc, char** argv) {
  int *d, *none, h[16] = {}; void* symbol; T(cudaMalloc(&d, 64)); T(cudaMemset(d, 0, 64));
  T(cudaMemcpy(h, d, 64, cudaMemcpyHostToDevice)); T(cudaMemcpy(d, h, 64, cudaMemcpyDeviceToHost)); """
    """T(cudaMemcpy(d, h, 128, cudaMemcpyHostToDevice));
  T(cudaGetLastError()); T(cudaGetLastError());
  T(cudaMemcpy(d, h, 64, cudaMemcpyDefault)); T(cudaMemset(h, 0, 64)); T(cudaMemset(d, 0, 1 << 23)); """
    """T(cudaMemcpy(h, nullptr, 4, cudaMemcpyDeviceToHost));
  T(cudaMemcpy(array, h, 64, cudaMemcpyHostToDevice)); T(cudaMemcpyToSymbol(array, h, 64)); """
    """T(cudaMemcpyToSymbol(array, h, 128));
  T(cudaGetSymbolAddress(&symbol, array)); T(cudaMemset(symbol, 0, 64)); """
    """T(cudaMemcpy(h, h, 4, cudaMemcpyDeviceToHost)); T(cudaMemcpy(h, h, 4, cudaMemcpyHostToHost));
  T(cudaFree(h)); T(cudaFree(nullptr)); T(cudaMalloc(&none, 0)); T(cudaSetDevice(7)); puts("");
  if (argc > 1 && *argv[1] == 'n') null<<<1, 1>>>(nullptr);
  if (argc > 1 && *argv[1] == 'm') misaligned<<<1, 1>>>((char*)d);
  if (argc > 1 && *argv[1] == 'a') asserting<<<1, 1>>>(4);
  T(cudaDeviceSynchronize()); T(cudaGetLastError()); T(cudaGetLastError()); T(cudaMalloc(&none, 4)); """
    """T(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost)); T(cudaFree(d));
}
"""
)
# What an H200 gave (2026-11-21).
CODES_ON_H200 = "0 0 1 1 1 1 0 0 1 1 1 1 0 1 0 0 1 0 1 0 0 101 \n"


@pytest.mark.parametrize(
    "kernel, after", [("n", "700 700 0 700 700 700 "), ("m", "716 716 0 716 716 716 "), ("a", "710 710 0 710 710 710 ")]
)
def test_calls_return_the_errors_that_a_gpu_returns(simt, kernel, after):
    """Do refused copies, and calls after a kernel has failed, return what they returned on an H200?"""
    done = simt("run", "a.cu", kernel, files={"a.cu": CODES})
    assert done.stdout == CODES_ON_H200 + after


def test_a_refused_copy_is_explained(simt):
    """Is the sentence about a copy in the wrong direction there, with its line, where CUDA says "invalid argument"?"""
    source = SOUND.replace("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice")
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == 1 and "invalid argument" in done.stderr
    assert f"its target is not device memory (a.cu, line {line_of(source, 'cudaMemcpyHostToDevice')})." in done.stderr


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
    assert (
        done.returncode == 0 and "Kernel fill was not launched: its block (2048, 1, 1) has 2,048 threads" in done.stderr
    )


CRASHES = {
    "int* p = nullptr; *p = argc;  // here": (139, "through a null pointer (a.cu, line"),
    "memset((void*)0x5000000000ull, argc, 64);  // here": (139, "at an address where nothing is allocated (a.cu, line"),
    "return endless(argc);  // here": (139, "ran out of stack"),
    "abort();  // here": (134, "abort()"),
    "return 5 / (argc - 1);  // here": (136, "divides an integer by zero (a.cu, line"),
    "*(volatile int*)0x1234567812345678 = argc;  // here": (
        139,
        "at an address where nothing is allocated (a.cu, line",
    ),
    "assert(argc == 5);  // here": (134, "The assertion `argc == 5` in line"),
    "std::vector<int>(3).at(argc + 3);  // here": (134, "std::out_of_range"),
}


@pytest.mark.slow
@pytest.mark.parametrize("statement", CRASHES)
def test_a_crash_of_the_host_code_is_told(simt, statement):
    """Is a crash outside of kernels one sentence, with its line if there is one, and the status that a shell shows?"""
    status, sentence = CRASHES[statement]
    head = (
        "#include <cassert>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\nvolatile int zero;\n"
        "int endless(int n) { volatile int a[100]; a[n % 100] = n; return endless(n + 1) + a[zero]; }\n"
    )
    source = head + f"int main(int argc, char** argv) {{\n  {statement}\n  return 0;\n}}\n"
    done = simt("run", "a.cu", files={"a.cu": source})
    assert done.returncode == status and sentence in done.stderr, done.stderr
    if sentence.endswith("(a.cu, line"):
        assert f"(a.cu, line {line_of(source, '// here')})" in done.stderr


LOOPS = {
    "host": 'printf("started\\n"); fflush(stdout); for (volatile int i = 0; ; i = 1) { }',
    "kernel": 'printf("started\\n"); fflush(stdout); spin<<<1, 32>>>();',
}


@pytest.mark.parametrize("where", LOOPS)
def test_ctrl_c_ends_it(tmp_path, where):
    """Does Ctrl-C end a loop of the host's and one in a kernel, with status 130?"""
    (tmp_path / "a.cu").write_text(
        f"#include <cstdio>\n__global__ void spin() {{ for (volatile int i = 0; ; i = 1) {{ }} }}\n"
        f"int main() {{ {LOOPS[where]} }}\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "simt", "run", "a.cu"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "started\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in said


def test_a_reader_that_leaves_is_no_error(tmp_path):
    """Does `simt run a.cu | head -1` end quietly?"""
    (tmp_path / "a.cu").write_text(
        '#include <cstdio>\nint main() { for (int i = 0; i < 1000000; i++) printf("%d\\n", i); }\n'
    )
    done = subprocess.run(
        f"{sys.executable} -m simt run a.cu | head -1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
    done = subprocess.run(
        f"{sys.executable} -m simt --help | true",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""


def test_the_device_can_be_chosen(simt):
    """Do --device and SIMT_DEVICE change what cudaGetDeviceProperties says and what __CUDA_ARCH__ is?"""
    source = (
        CHECK + "__device__ int arch() { return __CUDA_ARCH__; }\n__global__ void tell(int* p) { *p = arch(); }\n"
        "int main() { cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0)); int *d, a; CHECK(cudaMalloc(&d, 4)); "
        "tell<<<1, 1>>>(d); CHECK(cudaMemcpy(&a, d, 4, cudaMemcpyDeviceToHost)); "
        'printf("%s %d %d", p.name, p.multiProcessorCount, a); }\n'
    )
    assert simt("run", "a.cu", files={"a.cu": source}).stdout == "T4 40 750"
    assert simt("run", "--device", "h200", "a.cu").stdout == "H200 132 900"
    assert simt("run", "--device", "NVIDIA H200", "a.cu").stdout == "H200 132 900"
    assert simt("run", "a.cu", environment={"SIMT_DEVICE": "A100"}).stdout == "A100 108 800"
    assert simt("run", "a.cu", environment={"SIMT_DEVICE": "A100-SXM4-80GB"}).stdout == "A100 108 800"
    refused = simt("run", "a.cu", environment={"SIMT_DEVICE": "B9000"})
    assert refused.returncode == 2 and "Error: SIMT_DEVICE: The GPU 'B9000' is unknown. Choose one of" in refused.stderr


def test_options_reach_the_launch(simt):
    """Do --schedule, --threads and --seconds count?"""
    source = (
        CHECK + 'int main(int n, char**); __global__ void k(int* p) { printf("%d ", threadIdx.x); '
        "if (p) for (volatile int i = 0; ; i = 1) { } }\n"
        "int main(int argc, char**) { k<<<1, 4>>>(argc > 1 ? &argc : nullptr); CHECK(cudaDeviceSynchronize()); }\n"
    )
    assert simt("run", "--threads", "1", "a.cu", files={"a.cu": source}).stdout == "0 1 2 3 "
    assert simt("run", "--schedule", "reverse", "a.cu").stdout == "3 2 1 0 "
    done = simt("run", "--seconds", "0.2", "a.cu", "endless")
    assert (
        done.returncode == 1
        and "did not end within the time limit" in done.stderr
        and "the launch timed out" in done.stderr
    )


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
    """Does a program with the samples' helper_cuda.h and helper_functions.h run, with their arguments and their error
    texts?
    """
    done = simt("run", "a.cu", "-n=500", files={"a.cu": SAMPLE})
    assert done.stdout == 'GPU Device 0: "T4" with compute capability 7.5\n\n500 1\n'
    assert done.returncode == 1 and 'code=101(cudaErrorInvalidDevice) "cudaSetDevice(3)"' in done.stderr


# ---- Python files ----


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_model_without_a_main_part_is_called(simt):
    """Does a KernelBench file run its ModelNew on its own inputs?"""
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "")})
    assert (done.stdout, done.returncode) == ("20.0\n", 0), done.stderr
    done = simt(
        "run", "a.py", files={"a.py": MODEL.replace("PAST", "") + "\nif __name__ == '__main__':\n    print('mine')\n"}
    )
    assert done.stdout == "mine\n"


@pytest.mark.slow
def test_what_a_script_raises_is_told_with_its_line(simt):
    """Is an exception one sentence with the script's line, a failing kernel its sentence, a bad kernel its own line?"""
    done = simt("run", "a.py", files={"a.py": "def f():\n    return 1 / 0  # here\nf()\n"})
    assert done.returncode == 1 and done.stderr == "simt: a.py, line 2: ZeroDivisionError: division by zero\n"
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "").replace("p[i] =", "p[i + 1000000000ll] =")})
    assert done.returncode == 1 and "(kernel fill, cuda_sources line" in done.stderr
    done = simt("run", "a.py", files={"a.py": MODEL.replace("PAST", "+ undeclared")})
    assert done.returncode == 3 and done.stderr.startswith("simt: cuda_sources, line")
