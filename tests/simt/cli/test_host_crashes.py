"""Does host code that destroys its stack or its heap, or ends in another thread, end in one sentence with its line?"""

import os
import resource

import pytest

from tests.simt.cli.sources import line_of

# One program, so that it is compiled once: its argument says what it does.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

volatile int zero;

__global__ void fill(int* p, int n) {
  if (threadIdx.x < n) p[threadIdx.x] = 1;  // kernel
}
void launch() {
#ifdef SIMT_CHECK  // in a plain run what it damages is the heap
  int* p;
  cudaMalloc(&p, 100);
  fill<<<1, 32>>>(p, 32);
  cudaDeviceSynchronize();
  cudaFree(p);
#endif
}
__attribute__((noinline)) int destroy(int n) {
  int local[4];
  for (volatile int i = 0; i < n; i++) local[i] = 0x12345678;  // destroy
  return local[zero];
}
int endless(int n) {
  volatile int local[100];
  local[n % 100] = n;
  return endless(n + 1) + local[zero];
}
struct Global {
  ~Global() {
    if (zero == 2) abort();  // destructor
  }
} global;

int main(int argc, char** argv) {
  const std::string what = argv[1];
  int local[100] = {};
  void (*volatile function)() = nullptr;
  void *volatile small = malloc(64), *volatile medium = malloc(5000), *volatile after = malloc(5000);
  if (what == "past stack") for (volatile int i = 0; i < 100000; i++) local[i] = i;  // past stack
  if (what == "before stack") for (volatile int i = 0; i > -90000000; i--) local[i] = i;  // before stack
  if (what == "return address") return destroy(12);
  if (what == "function pointer") function();  // function pointer
  if (what == "recursion") return endless(1);
  if (what == "twice small") { free(small); free(small); }  // twice small
  if (what == "twice medium") { launch(); free(medium); free(medium); }  // twice medium
  if (what == "local") { launch(); free(local + zero); }  // local
  memset(medium, 0x41, 5000);  // which free takes for the size of a block
  if (what == "inside") free((char*)medium + 40);  // inside
  if (what == "terminate") std::terminate();  // terminate
  if (what == "noexcept") []() noexcept { throw 3; }();  // noexcept
  if (what == "printf") { printf("begin "); printf("%s", (char*)0x5000000000 + zero); }  // printf
  if (what == "thread") std::thread([] { *(volatile int*)nullptr = 1; }).join();  // thread
  if (what == "abort in thread") std::thread([] { abort(); }).join();  // abort in thread
  if (what == "recursion in thread") std::thread([] { endless(1); }).join();
  if (what == "recursion in pthread") {
    pthread_t thread;
    pthread_create(&thread, nullptr, [](void*) { return (void*)(size_t)endless(1); }, nullptr);
    pthread_join(thread, nullptr);
  }
  if (what == "exit in thread") std::thread([] { puts("left"); exit(7); }).join();
  if (what == "destructor") zero = 2;
  if (what == "simt's memory") {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[500];
    unsigned long from, to;
    while (fgets(line, sizeof line, maps))
      if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &from, &to) == 2) memset((void*)from, 0x41, to - from);
  }
  if (what == "fork") {
    if (fork() == 0) {
      puts("child");
      exit(3);
    }
    int status;
    wait(&status);
    printf("parent of %d\n", WEXITSTATUS(status));
  }
  if (what == "no memory") {
    while (malloc(100000)) {}
    while (malloc(16)) {}
    puts("no more");
  }
  return local[zero];
}
"""
STACK = "past the end of its stack. Check the indices of its local arrays"
ABORTED = "The program was aborted"
DAMAGED = "it has damaged the memory of the process"
# The signal, words of the sentence and the comment in its line, which is the argument where none is given.
CRASHES = {
    "past stack": (11, STACK),
    "before stack": (11, "ran out of stack"),
    "return address": (11, "", "destroy"),
    "function pointer": (11, "jumps to an address that is not one of its functions"),
    "recursion": (11, "ran out of stack", ""),
    "twice small": (6, ABORTED),
    "twice medium": (6, ""),
    "local": (None, ""),  # what free takes for its size decides
    "inside": (6, ABORTED),
    "terminate": (6, ABORTED),
    "noexcept": (6, ABORTED),
    "printf": (11, "at an address where nothing is allocated"),
    "thread": (11, "through a null pointer"),
    "abort in thread": (6, "called abort()"),
    "recursion in thread": (11, "ran out of stack", ""),
    "recursion in pthread": (11, "ran out of stack", ""),
    "destructor": (6, "called abort()"),
    "simt's memory": (None, DAMAGED, ""),
}


@pytest.fixture
def crash(simt):
    """Runs the program with an argument: crash("check", "inside")."""
    return lambda command, *words, **options: simt(command, "a.cu", *words, files={"a.cu": PROGRAM}, **options)


@pytest.mark.parametrize("what", CRASHES)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_crash_ends_in_a_sentence(crash, command, what):
    """Are there the sentence, the line and the status of a crash, in time, whatever the program has destroyed?"""
    number, sentence, *comment = CRASHES[what]
    done = crash(command, what)
    assert sentence in done.stderr and "a.cu" in done.stderr, done.stderr
    if command == "check":
        assert done.returncode == 1, done.stderr
    elif number:
        assert done.returncode == 128 + number, done.stderr
    comment = comment[0] if comment else what
    if comment == "destroy":  # the end of the function is the place
        assert "a.cu, line" in done.stderr
    elif comment:
        assert f"a.cu, line {line_of(PROGRAM, f'// {comment}')}" in done.stderr, done.stderr


def test_what_the_checks_have_found_is_not_lost(crash):
    """Are a kernel's findings reported though the heap is locked, since malloc has found it damaged?"""
    for what in ("twice medium", "local"):
        found = crash("check", what).stderr
        assert f"out_of_bounds: a.cu, line {line_of(PROGRAM, '// kernel')}, kernel fill: Thread (25, 0, 0)" in found


def test_other_threads_and_processes_end_as_without_simt(crash):
    """Does exit() in another thread end the program, and only the child's own process in a child?"""
    done = crash("run", "exit in thread")
    assert (done.stdout, done.stderr, done.returncode) == ("left\n", "", 7)
    done = crash("run", "fork")
    assert (done.stdout, done.stderr, done.returncode) == ("child\nparent of 3\n", "", 0)


def test_the_report_of_a_program_that_leaves_no_memory(crash):
    """Is the report there when the program has used up the address space?"""
    done = crash("check", "no memory", preexec_fn=_limit_to(4))
    assert done.stdout == "no more\n" and done.returncode == 5
    assert done.stderr == "simt: No kernel was launched, so none was checked.\n"


TIMER = """
#include <csignal>
#include <cstdio>
#include <unistd.h>
volatile sig_atomic_t rung;
struct Early { Early() { if (getenv("EARLY")) *(volatile int*)nullptr = 1; } } early;  // early
int main() {
  signal(SIGALRM, [](int) { rung = 1; });
  ualarm(100000, 0);
  pause();
  printf("rung %d\\n", (int)rung);
}
"""


def test_a_timer_interrupts_main(simt):
    """Does a signal of the process reach the thread of main? And does a global object's constructor have its line?"""
    done = simt("run", "a.cu", files={"a.cu": "#include <cstdlib>\n" + TIMER})
    assert (done.stdout, done.returncode) == ("rung 1\n", 0)
    done = simt("check", "a.cu", environment={"EARLY": "1"})
    assert done.returncode == 1 and f"illegal_address: a.cu, line {line_of(TIMER, '// early') + 1}: " in done.stderr


GREEDY = """
#include <cstdio>
#include <cstdlib>
__global__ void take(int* p) { if (threadIdx.x == 0) *p = blockIdx.x; }
int main() {
  int *p, last, *more = nullptr;
  cudaMalloc(&p, 4);
  take<<<8, 32>>>(p);
  cudaMemcpy(&last, p, 4, cudaMemcpyDeviceToHost);
  for (size_t bytes = 1 << 28; bytes > 4096; bytes /= 2)
    while (malloc(bytes)) {}
  while (cudaMalloc(&more, 4) == cudaSuccess) {}
  printf("%d\\n", last);
  exit(1);
}
"""


def _limit_to(gibibytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (gibibytes << 30, gibibytes << 30))


def test_orders_are_compared_after_all_memory_was_used(simt):
    """Is the program run with its threads in other orders though it has used up the address space?"""
    files = {"a.cu": GREEDY.replace("*p = blockIdx.x", "atomicExch(p, blockIdx.x)")}
    done = simt("check", "--threads", "1", "a.cu", files=files, preexec_fn=_limit_to(4))
    assert done.returncode == 1 and "schedule: a.cu, line 4, kernel take: The program's result depends" in done.stderr


NO_PROCESS = """
import errno, os, subprocess
run = subprocess.run
def refuse(command, **options):
    if "--schedule" in command:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return run(command, **options)
subprocess.run = refuse
"""


def test_a_machine_without_another_process(simt, tmp_path):
    """Does one sentence say that the orders of threads were not compared where no process can be started?"""
    files = {
        "a.cu": GREEDY.replace("malloc(bytes)", "0").replace("while (cudaMalloc", "if (cudaMalloc"),
        "sitecustomize.py": NO_PROCESS,
    }
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}
    files["a.cu"] = files["a.cu"].replace("take<<<8, 32>>>", "take<<<1, 32>>>")
    done = simt("check", "a.cu", files=files, environment=environment)
    sentence = "simt: The program was not run again with its threads in other orders: no process can be started"
    assert f"{sentence} (Resource temporarily unavailable).\n" in done.stderr


def test_free_of_device_memory_names_cudafree(simt):
    text = "#include <cstdlib>\nint main() {\n  int* d;\n  cudaMalloc(&d, 400);\n  free(d);\n}\n"
    done = simt("check", "a.cu", files={"a.cu": text})
    assert "a.cu, line 5: Host code frees device memory with free() or delete. Free it with cudaFree." in done.stderr
