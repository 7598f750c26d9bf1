"""If the source shows the cause of a failure: are its lines those that a reader would point to?"""

from pathlib import Path

import pytest

from grader.judging import findings
from grader.source import contract, places
from grader.verdict import Reason, Stage, StageName, Status
from grader.worker import protocol

KERNEL = """__global__ void k(float* y, int n) {
    int i = threadIdx.x;
    while (i < n) {
        y[i] = 1;
    }
    for (int half = 128; half >= 0; half /= 2) {
        y[half] += 1;
    }
}
"""
PYTHON = """def forward(self, x):
    done = 0
    while done < 3:
        y = kernels.run(x)
    return y
"""
PARTED = """    for (int s = 64; s > 0; s /= 2) {
        if (threadIdx.x < s) {
            a[threadIdx.x] += a[threadIdx.x + s];
            __syncthreads();
        }
    }
    __syncthreads();
    if (lane < 16) v += __shfl_down_sync(0xffffffff, v, 16);
"""
LAUNCH = """    int H = x.size(0), OH = H - K, OW = W - K;
    auto y = torch::empty({OH, OW}, x.options());
    int blocks = (y.numel() + 255) / 256;
    dim3 threads(OW, OH);
    k<<<blocks, threads>>>(y.data_ptr<float>());
"""
BOUND = """module = load_inline(
    name="m",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["runs"],
)
"""


def found(reason: Reason, message: str, source: str, line: int | None):
    return places.find_place(
        Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message), source, line
    )


@pytest.mark.parametrize(
    "reason, message, source, line, lines, says",
    [
        (Reason.kernel_timeout, "", KERNEL, 4, (3,), "changes `i` or `n`"),
        (Reason.kernel_timeout, "", KERNEL, 7, (6,), "half of 0 is 0"),
        (
            Reason.kernel_timeout,
            "",
            (
                "void f() {\n"
                "  int a;\n"
                "  for (int i = 0; i < n; i++) a += i;\n"
                "  for (int s = 8; s >= 0; s >>= 1) a += s;\n"
                "}\n"
            ),
            1,
            (4,),
            "half of 0",
        ),
        (
            Reason.kernel_timeout,
            "",
            "for (int i = 8; i < n; i -= 2)\n    y[i] = 1;\n",
            2,
            (1,),
            "`i -= 2` makes `i` smaller, so `i < n` always holds.",
        ),
        (Reason.timeout, "", PYTHON, 4, (3,), "changes `done`"),
        (
            Reason.barrier_divergence,
            "waits at the __syncthreads() in line 4, while the other waits in line 7",
            PARTED,
            7,
            (2, 4),
            "inside the `if` of line 2",
        ),
        (
            Reason.warp_divergence,
            "in line 8 for lane 16",
            PARTED,
            8,
            (8,),
            "The `if` in line 8 lets only some threads reach the call",
        ),
        (Reason.launch_error, "its grid (0, 1, 1) has no block along x", LAUNCH, 5, (1,), "become 0"),
        (Reason.launch_error, "its block (42, 38, 1) has 1,596 threads", LAUNCH, 5, (4,), "out of range"),
        (
            Reason.undeclared_function,
            "functions= names `runs`, which cpp_sources does not declare.",
            BOUND,
            1,
            (3, 5),
            "different functions",
        ),
        (
            Reason.missing_cpp_sources,
            "functions= names `run`, but cpp_sources is empty",
            BOUND,
            1,
            (3,),
            "missing here",
        ),
        (
            Reason.uninitialized,
            "updates element 0 of `sum`, which was never written.",
            "__shared__ float sum;\n\natomicAdd(&sum, v);",
            3,
            (1, 3),
            "nothing between sets it",
        ),
        (
            Reason.uninitialized,
            "updates element 0 of `counts`, which was never written.",
            "atomicAdd(&counts[b], 1);\n}\nauto counts = torch::empty({bins}, options);\n",
            1,
            (3,),
            "arbitrary content, and line 1 adds to it",
        ),
        (
            Reason.illegal_address,
            "writes through a null pointer",
            "float* out = nullptr;\nk<<<1, 1>>>(out);",
            2,
            (1,),
            "nothing sets it",
        ),
        (Reason.crash, "died of a segmentation fault", "int* p = nullptr;\nint n = p[0];", None, (1, 2), "`p` is null"),
        (
            Reason.out_of_memory,
            "no memory",
            "auto a = torch::empty({3}, o);\nauto b = torch::empty({N, 10000000}, o);",
            2,
            (2,),
            "allocated here",
        ),
    ],
)
def test_lines(reason, message, source, line, lines, says):
    """Are these lines named, and does the sentence say why?"""
    place = found(reason, message, source, line)
    assert place is not None and place.lines == lines and says.lower() in place.words.lower()


RANKS = """__global__ void other(float* y) {
    __shared__ float middle[2];
}
__global__ void k(const float* x, float* y, int W) {
    __shared__ float middle[2];
    for (int w = threadIdx.x; w < W; w += 32) {
        if (x[w] == 0) middle[0] = x[w];
        if (x[w] == 1)
            middle[1] = x[w];
    }
    __syncthreads();
    if (threadIdx.x == 0) y[0] = (middle[0] + middle[1]) / 2;
}
"""
MET = "`middle[{}]` is set only under {}, and in this case no thread of the block meets {}."


@pytest.mark.parametrize(
    "element, source, beside, words",
    [
        (0, RANKS, (7,), MET.format(0, "a condition (line 7)", "it")),
        (1, RANKS, (9,), MET.format(1, "a condition (line 9)", "it")),
        (
            0,
            RANKS.replace("middle[1] =", "middle[0] ="),
            (7, 9),
            MET.format(0, "conditions (line 7 and line 9)", "one of them"),
        ),
        (
            0,
            RANKS.replace("if (x[w] == 0) ", ""),
            (7,),
            "Line 7 sets `middle[0]`, but in this case no thread of the block reaches it before line 12.",
        ),
        (
            1,
            RANKS.replace("middle[1] =", "middle[w] ="),
            (9,),
            "Line 9 sets elements of `middle`, but in this case not element 1.",
        ),
        (
            1,
            RANKS.replace("middle[1] =", "y[1] ="),
            (7,),
            "`middle` is declared in line 5, and nothing sets `middle[1]` before line 12 reads it.",
        ),
    ],
)
def test_values_given_in_other_cases(element, source, beside, words):
    """If some line of its own kernel does give the variable a value, does the message name it, and is it shown without
    being marked?
    """
    printed = f"Thread (0, 0, 0) of block (0, 0, 0) reads element {element} of `middle`, which was never written."
    place = found(Reason.uninitialized, printed, source, 12)
    assert (place.words, place.lines, place.beside) == (words, (), beside)


@pytest.mark.parametrize("handed", ["fill(middle, x);", "float* m = &middle[0]; m[0] = 1;"])
def test_what_a_pointer_may_set(handed):
    """Is nothing reported of a variable whose address is passed on?"""
    source = f"__shared__ float middle[2];\n{handed}\ny[0] = middle[0];\n"
    assert found(Reason.uninitialized, "reads element 0 of `middle`, which was never written.", source, 3) is None


CLEARED = """__global__ void count(const int* x, int* counts, int n, int bins) {
  extern __shared__ int own[];
  const int t = threadIdx.x;
  if (t < bins) own[t] = 0;
  __syncthreads();
  for (int i = t; i < n; i += blockDim.x) atomicAdd(&own[x[i]], 1);
}
"""


@pytest.mark.parametrize(
    ("old", "new", "element", "lines"),
    [
        ("", "", 1844, (4,)),
        ("own[t]", "own[threadIdx.x]", 1844, (4,)),
        ("", "", 700, ()),  # there may be a thread for it
        ("if (t < bins) own[t]", "for (int b = t; b < bins / 2; b += blockDim.x) own[b]", 1844, ()),
        ("own[t]", "own[2 * t]", 1844, ()),
        ("int t = threadIdx.x", "int t = threadIdx.x * 2", 1844, ()),
    ],
)
def test_one_element_per_thread(old, new, element, lines):
    """Is the line marked that sets an element for each thread, where no block has as many threads?"""
    printed = f"Thread (0, 0, 0) of block (0, 0, 0) updates element {element} of `own`, which was never written."
    place = found(Reason.uninitialized, printed, CLEARED.replace(old, new), 6)
    assert place is not None and place.lines == lines
    assert bool(lines) is ("Let each thread set several" in place.words)


@pytest.mark.parametrize(
    ("code", "verb"),
    [
        ("atomicAdd(&counts[b], 1);\nauto counts = torch::zeros({bins}, options);\n", "updates"),
        ("y[b] = counts[b];\nauto counts = torch::empty({bins}, options);\n", "reads"),
        ("atomicAdd(&counts[b], 1);\nauto counts = torch::empty({1}, o);\ncounts = torch::empty({2}, o);\n", "updates"),
    ],
)
def test_where_an_allocation_is_not_the_cause(code, verb):
    """Is no allocation named that sets its memory, whose memory is read, or that is one of several?"""
    assert found(Reason.uninitialized, f"{verb} element 0 of `counts`, which was never written.", code, 1) is None


PASSES = """constexpr int T = 16;
__global__ void k(const float* x, float* y, int K) {
    __shared__ float tile[T];
    float sum = 0;
    for (int k = 0; k < K; k += T) {
        tile[threadIdx.x] = x[k + threadIdx.x];
        __syncthreads();  // } all are there
#pragma unroll
        for (int i = 0; i < T; ++i) {
            sum += tile[i];
        }
    }
    y[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize(
    "source, two, over",
    [
        (PASSES, (6, 10), True),
        (PASSES, (10, 6), True),
        (PASSES.replace("__syncthreads();", "if (k) __syncthreads();"), (6, 10), False),
        (PASSES.replace("__syncthreads();", "if (k) { __syncthreads(); }"), (6, 10), False),
        (PASSES.replace("__syncthreads();", ""), (6, 10), False),
        (PASSES.replace("for (int k = 0; k < K; k += T)", ""), (6, 10), False),
        (PASSES, (6, 6), False),
    ],
)
def test_over_passes(source, two, over):
    """Is a barrier between two lines of one loop seen, if each pass comes to it, and none elsewhere?"""
    assert places.over_passes(source, *two) is over


def race(one: tuple[str, int], other: tuple[str, int]) -> str:
    """Return the message on two threads that touch an element in lines of PASSES, as simt's checks report it."""
    who = (
        f"thread (1, 0, 0) of block (0, 0, 0) {one[0]} element 3 of `tile`, which thread (3, 0, 0) of the same block "
        f"{other[0]} in line {other[1]}"
    )
    message = (
        f"{who} without a barrier in between. Put a `__syncthreads()` between the two. Being in one warp does not "
        "order them."
    )
    source = contract.Source(Path("k.py"), f'code = """{PASSES}"""\n', "")
    finding = protocol.Found(
        check="race", message=message, kernel="k", source="cuda_sources", line=one[1], block=[0, 0, 0], thread=[1, 0, 0]
    )
    return findings.of_check(finding, source, [{"cuda_sources": PASSES}], None).message


@pytest.mark.parametrize(
    "one, other, between",
    [
        (
            ("reads", 10),
            ("writes", 6),
            "between the read in one pass of the loop and the write in the next. Being in one warp",
        ),
        (
            ("reads", 6),
            ("writes", 10),
            "between the write in one pass of the loop and the read in the next. Being in one warp",
        ),
        (
            ("writes", 6),
            ("writes", 10),
            "between the write in line 10 in one pass of the loop and the one in line 6 in the next. Being",
        ),
        (("reads", 10), ("writes", 9), "between the two. Being in one warp"),
    ],
)
def test_threads_that_meet_in_different_passes(one, other, between):
    """Where a barrier does stand between the two lines, is the way named that has none?"""
    assert f"Put a `__syncthreads()` {between}" in race(one, other)


def race_in(statement: str, where: str) -> str:
    """Return the message on two threads of the same or of two blocks that race in a line with this statement."""
    code = f"__global__ void k(float* loss, float* s, int t) {{\n  {statement}\n}}\n"
    source = contract.Source(Path("k.py"), f'code = """{code}"""\n', "")
    message = f"Thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `loss`, which thread (32, 0, 0) of {where}"
    finding = protocol.Found(
        check="race", message=message, kernel="k", source="cuda_sources", line=2, block=[0, 0, 0], thread=[0, 0, 0]
    )
    return findings.of_check(finding, source, [{"cuda_sources": code}], None).message


SAME_BLOCK = "the same block writes in line 2 without a barrier in between. Put a `__syncthreads()` between the two."
OTHER_BLOCK = "block (1, 0, 0) writes in line 2. Blocks run in any order. Read it in a second kernel, or publish it."


@pytest.mark.parametrize("where", [SAME_BLOCK, OTHER_BLOCK])
@pytest.mark.parametrize(
    "statement, pointer",
    [
        ("if (t % 32 == 0) *loss += s[t] / 2;", "loss"),
        ("loss[0] += s[t];  // the sum", "&loss[0]"),
        ("if (t) { *loss -= 1; }", "loss"),
        ("*loss = *loss + s[t];", "loss"),
        ("loss[int(s[t])]++;", "&loss[int(s[t])]"),
        ("if (t < 9) ++*loss;", "loss"),
    ],
)
def test_threads_that_add_to_one_element_are_told_of_atomic_add(statement, pointer, where):
    """Does the advice name atomicAdd, which helps, and no barrier or second kernel, which do not?"""
    message = race_in(statement, where)
    assert f"use `atomicAdd({pointer}, …)`" in message
    assert "__syncthreads" not in message and "second kernel" not in message


@pytest.mark.parametrize("statement", ["s[t] += s[t + 32];", "s[t] = s[t + 1] + loss[0];", "loss[t] = s[t];"])
def test_other_races_in_one_line_keep_their_advice(statement):
    """Does a reduction in shared memory, whose threads read each other's elements, still get its barrier?"""
    assert "Put a `__syncthreads()` between" in race_in(statement, SAME_BLOCK)


@pytest.mark.parametrize(
    "reason", [Reason.wrong_values, Reason.race, Reason.kernel_timeout, Reason.launch_error, Reason.barrier_divergence]
)
def test_nothing_is_made_up(reason):
    """Where the source does not tell it, is nothing named?"""
    assert found(reason, "line 1", "float x = 1;\n", 1) is None


EARLY = """__global__ void k(const float* x, float* y, int n) {
    int t = threadIdx.x;
    int i = blockIdx.x * 256 + t;
    if (n == 0) return;
    if (i >= n) return;
    part[t] = x[i];
    __syncthreads();
    y[i] = part[255 - t];
}
"""
UNEVEN = """__device__ float total(float v) {
    part[threadIdx.x] = v;
    __syncthreads();
    return part[0];
}
__global__ void k(const float* x, float* y, int n) {
    float sum = 0.0f;
    for (int half = 64; half > 0; half /= 2) sum = total(sum);
    for (int c = threadIdx.x; c < n; c += 128) sum += total(x[c]);
    for (int c = threadIdx.x; c < n; c += 128) {
        y[c] = sum;
        __syncthreads();
    }
}
"""


SECOND = """__global__ void k(const float* x, float* y, int n) {
    const int warp = blockIdx.x, SPACE = threadIdx.x;
    HEAD
    for (int first = 0; first < n; first += 32) {
        const int c = first + threadIdx.x;
        part[threadIdx.x] = x[c];
        __syncthreads();
    }
}
"""


WARPS = """constexpr int WARP = 32;
__global__ void k(const float* x, float* y, int n) {
    const int lane = threadIdx.x % 32, row = NUMBER;
    if (row >= n) return;
    for (int c = START; c < n; c += 32) {
        float v = x[c];
        for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    }
    __syncthreads();
}
"""


def warps(number: str, start: str = "lane") -> str:
    return WARPS.replace("NUMBER", number).replace("START", start)


@pytest.mark.parametrize(
    "source, line, marked, says",
    [
        # a whole warp returns: its shuffles lack no lane, the barrier of the block does
        (warps("blockIdx.x * 8 + threadIdx.x / 32"), 7, (7,), "different numbers of passes of the loop in line 5"),
        (warps("(blockIdx.x * 8 + (int)threadIdx.x) / WARP"), 7, (7,), "passes of the loop in line 5"),
        (warps("threadIdx.x >> 5"), 7, (7,), "passes of the loop in line 5"),
        (warps("blockIdx.x * 8 + threadIdx.x / 32"), 9, (4,), "Line 4 lets some threads return before the barrier"),
        (warps("blockIdx.x * 8 + threadIdx.x / 16"), 7, (4,), "Line 4 lets some threads return before the shuffle"),
        (SECOND.replace("SPACE", "i").replace("HEAD", "if (i >= n) return;"), 7, (3,), "Line 3 lets some threads"),
        (
            SECOND.replace("SPACE", "i").replace("HEAD", "int i2(min(i, n)); if (i2 >= n) return;"),
            7,
            (3,),
            "Line 3 lets some threads return before the barrier in line 7",
        ),
        (
            SECOND.replace("SPACE", "i").replace("HEAD", "").replace("();\n", "();\n        if (i > n) return;\n"),
            7,
            (8,),
            "Line 8 lets some threads return, and in the next pass of the loop in line 4 the barrier in line 7 waits",
        ),
        (EARLY, 7, (5,), "Line 5 lets some threads return before the barrier in line 7, which all must reach."),
        (
            UNEVEN,
            3,
            (9,),
            "the loop in line 9, and each pass calls `total`, which waits for all threads in line 3.",
        ),
        (UNEVEN, 12, (12,), "the loop in line 10, and each pass waits for all threads in line 12."),
    ],
)
def test_what_keeps_threads_from_a_barrier(source, line, marked, says):
    """Is the return, or the call in a loop, named by which threads miss a barrier, and not the barrier?"""
    message = f"Thread (0, 0, 0) waits at the __syncthreads() in line {line}, but thread (9, 0, 0) has ended."
    stage = Stage(name=StageName.correct, status=Status.failed, reason=Reason.barrier_divergence, message=message)
    found = places.find_place(stage, source, line)
    assert found is not None and found.lines == marked and found.instead and says in found.words


def test_a_loop_that_all_threads_run_alike_is_not_blamed():
    """Is nothing named for a barrier in a loop whose bounds are the same for all threads?"""
    source = UNEVEN.replace("c = threadIdx.x", "c = 0")
    declared = SECOND.replace("SPACE", "i").replace("HEAD", "if (warp >= n) return;")
    stage = Stage(name=StageName.correct, status=Status.failed, reason=Reason.barrier_divergence, message="line 12")
    assert places.find_place(stage, source, 12) is None and places.find_place(stage, source, 3) is None
    assert found(Reason.barrier_divergence, "line 7", declared, 7) is None
    assert found(Reason.warp_divergence, "line 7", warps("threadIdx.x / WARP", "0"), 7) is None


TILES = """__global__ void k(const float* x, float* y, int n) {
    __shared__ float keys[TILE][D];
    for (int first = 0; first < n; first += TILE) {
        const int count = min(TILE, n - first);
        for (int i = threadIdx.x; i < count * D; i += 64) {
            keys[i / D][i % D] = x[first * D + i];
        }
        __syncthreads();
        const int seen = min(TILE, n);
        for (int j = 0; j < seen; ++j) {
            for (int d = 0; d < D; ++d) sum += keys[j][d];
        }
        __syncthreads();
    }
}
"""


@pytest.mark.parametrize(
    "old, new, marked, says",
    [
        ("", "", (9,), "The loop in line 10 reads on to `seen`, which line 9 computes without `count`."),
        ("j < seen", "j < TILE", (10,), "The loop in line 10 reads on to `TILE`. Read no further"),
        ("keys[j][d]", "keys[d][j]", (11,), "`d` runs to `D`: it belongs in the second index. Read `keys[j][d]`."),
        ("min(TILE, n);", "min(count, n);", (), "sets elements of `keys`, but in this case not element 64."),
    ],
)
def test_a_read_of_more_than_was_set(old, new, marked, says):
    """Is the bound that lets a loop read too far marked, or the read whose indices are swapped; else no line?"""
    printed = "Thread (0, 0, 0) of block (0, 0, 0) reads element 64 of `keys`, which was never written."
    place = found(Reason.uninitialized, printed, TILES.replace(old, new), 11)
    assert place is not None and place.lines == marked and says in place.words


def test_an_array_that_lines_set_needs_no_first_value():
    """Is the advice to initialize left out where lines, or maybe a function, set other elements, and kept elsewhere?"""
    changed = (TILES.replace("keys[i / D][i % D] =", f"{other}y[i] =") for other in ("", "fill(keys, i); "))
    for code, kept in zip((TILES, *changed), (False, True, False)):
        source = contract.Source(Path("k.py"), f'code = """\n{code}"""\n', "")
        message = "Thread (0, 0, 0) of block (0, 0, 0) reads element 64 of `keys`, which was never written."
        finding = protocol.Found(
            check="uninitialized", message=f"{message} Initialize it before the read.", kernel="k",
            source="cuda_sources", line=12, block=[0, 0, 0], thread=[0, 0, 0],
        )  # fmt: skip
        of_it = findings.of_check(finding, source, [{"cuda_sources": f"\n{code}"}], None)
        assert ("Initialize it" in of_it.message) is kept


LOOPED = """for (int d = 1; d < 32; d *= 2) {
    s[t] += s[t + d];
    __syncthreads();
  }"""
IN_A_WARP = """if (threadIdx.x < 32) {
    for (int d = 16; d > 0; d /= 2) {
      s[t] += s[t + d];
    }
  }"""
BOTH_HERE = (
    "the same block writes in line 3 without a barrier in between. Both are in this line: if it is in a loop, end the "
    "loop's body with a `__syncthreads()`, outside of any `if`; else keep what is read in a variable, and put the "
    "barrier before the write."
)


@pytest.mark.parametrize(
    "statement, line, says, leaves_out",
    [
        (LOOPED, 3, "Read into a variable first, then call `__syncthreads()`", "end the loop's body"),
        (IN_A_WARP, 4, "call `__syncwarp()`, write, and call `__syncwarp()` again", "__syncthreads"),
        (
            LOOPED.replace("__syncthreads();", ""),
            3,
            "Both are in this line: end the body of the loop in line 2 with a `__syncthreads()`, outside of any `if`.",
            "__syncwarp",
        ),
        (
            LOOPED.replace("__syncthreads();", "").replace("d = 1", "d = threadIdx.x"),
            3,
            "make different numbers of passes of the loop in line 2, so that no barrier can order them there.",
            "__sync",
        ),
        (
            "if (t < 32) s[t] += s[t + 1];",
            2,
            "Both are in this line: keep what is read in a variable, and put a `__syncthreads()` before the write.",
            "loop",
        ),
    ],
)
def test_a_line_that_races_with_itself(statement, line, says, leaves_out):
    """Is a barrier at the end of the loop's body advised only where there is none and all threads run the loop?"""
    code = f"__global__ void k(float* loss, float* s, int t) {{\n  {statement}\n}}\n"
    source = contract.Source(Path("k.py"), f'code = """{code}"""\n', "")
    finding = protocol.Found(
        check="race", message=f"Thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `s`, which thread (1, 0, 0) of "
        f"{BOTH_HERE.replace('line 3', f'line {line}')}",
        kernel="k", source="cuda_sources", line=line, block=[0, 0, 0], thread=[0, 0, 0],
    )  # fmt: skip
    message = findings.of_check(finding, source, [{"cuda_sources": code}], None).message
    assert says in message and leaves_out not in message and " else " not in message


def test_two_writes_in_a_line():
    """Is a loop mentioned only where there is one?"""
    once = "the same block writes in line {} without a barrier in between. Give each thread an element of its own."
    loop = (
        " If the line is in a loop and each pass writes other elements, put a `__syncthreads()` between one pass and "
        "the next."
    )
    assert "loop" not in race_in("s[0] = t;", once.format(2) + loop)
    looped = "for (int d = 1; d < 32; d *= 2) {\n    s[d] = t;\n  }"
    code = f"__global__ void k(float* loss, float* s, int t) {{\n  {looped}\n}}\n"
    source = contract.Source(Path("k.py"), f'code = """{code}"""\n', "")
    finding = protocol.Found(
        check="race", message=f"Thread (0, 0, 0) writes element 0 of `s`, which thread 2 of {once.format(3)}{loop}",
        kernel="k", source="cuda_sources", line=3, block=[0, 0, 0], thread=[0, 0, 0],
    )  # fmt: skip
    message = findings.of_check(finding, source, [{"cuda_sources": code}], None).message
    assert "If each pass of the loop in line 2 writes other elements, put a `__syncthreads()` between" in message


LOOK_BACK = """__global__ void scan(const float* x, float* y, volatile float* sums, volatile int* flags) {
    int part = blockIdx.x;
    flags[part] = 1;
    for (int p = part - 1; p >= 0; p--) {
        int flag;
        do flag = flags[p]; while (flag == 0);
        y[p] += flag;
    }
}
"""


def test_a_loop_that_waits_for_another_block():
    """Is the number of the part named by which a block waits for one that need not have started, and no other loop?"""
    place = found(Reason.kernel_timeout, "The kernel did not end.", LOOK_BACK, 6)
    assert place is not None and place.lines == (2,) and place.instead and "`flags[p]`" in place.words
    numbered = LOOK_BACK.replace("int part = blockIdx.x;", "int part = taken;")
    for source in (numbered, LOOK_BACK.replace("flags[part] = 1;", "y[part] = 1;")):
        assert found(Reason.kernel_timeout, "The kernel did not end.", source, 6).lines == (6,)
