"""What nvcc makes of the counted code: instructions against ncu's counts, and accesses against nvcc's machine code.

The numbers for nvcc come from the machine code that nvcc 13 generates for sm_90 for these kernels: of a loop whose step
is constant it makes copies of the body, with all loads first; of one that steps by blockDim.x it makes none.
"""

import dataclasses
import json
import math
import statistics
from pathlib import Path

import pytest
import torch

import simt
from simt.counting.time_model import Work, instructions, predict

DATA = Path(__file__).resolve().parents[3] / "benchmarks" / "data"
N = 64

KERNELS = """
__global__ void one_by_one(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i * 32 + threadIdx.x];
  y[threadIdx.x] = sum;
}
__global__ void exponentials(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += expf(x[i * 32 + threadIdx.x]);
  y[threadIdx.x] = sum;
}
__global__ void divided(const float* x, float* y, int n) {
  float sum = 0, by = y[0];
  for (int i = 0; i < n; i++) sum += x[n + i] / by;
  y[threadIdx.x] = sum;
}
__global__ void divided_side_by_side(const float* x, float* y, int n) {
  float by = y[0], sum = x[0] / by;
  sum += x[n] / by;
  sum += x[2 * n] / by;
  y[threadIdx.x] = sum;
}
__global__ void roots(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += sqrtf(x[n + i]);
  y[threadIdx.x] = sum;
}
__global__ void reciprocal_roots(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += rsqrtf(x[n + i]);
  y[threadIdx.x] = sum;
}
__global__ void tangents(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += tanhf(x[n + i]);
  y[threadIdx.x] = sum;
}
__global__ void exponentials_of_some(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) {
    float v = x[n + i];
    if (v >= 0) sum += expf(v);
  }
  y[threadIdx.x] = sum;
}
__global__ void some(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) {
    float v = x[n + i];
    if (v >= 0) sum += v;
  }
  y[threadIdx.x] = sum;
}
__global__ void unsigned_index(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[blockIdx.x * n + i];
  y[threadIdx.x] = sum;
}
__global__ void along_rows(const float* x, float* y, int n) {
  float sum = 0;
  int row = threadIdx.x;
  for (int i = 0; i < n; i++) sum += x[row * n + i];
  y[row] = sum;
}
__global__ void down_columns(const float* x, float* y, int n) {
  float sum = 0;
  int column = threadIdx.x;
  for (int i = 0; i < n; i++) sum += x[i * n + column];
  y[column] = sum;
}
__global__ void by_warps(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < 32 * n; i += 32) sum += x[i];
  y[threadIdx.x] = sum;
}
__global__ void by_blocks(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < 32 * n; i += blockDim.x) sum += x[i];
  y[threadIdx.x] = sum;
}
__global__ void stored_between(const float* x, float* y, int n) {
  for (int i = 0; i < n; i++) y[i * 32 + threadIdx.x] = x[i * 32 + threadIdx.x];
}
__global__ void chased(const float* x, float* y, int n) {
  const int* next = (const int*)x;
  int at = 0;
  for (int i = 0; i < n; i++) at = next[at];
  y[threadIdx.x] = at;
}
__global__ void three_turns(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n / 21; i++) sum += x[i * 32 + threadIdx.x];
  y[threadIdx.x] = sum;
}
__global__ void side_by_side(const float* x, float* y, int n) {
  const float* p = x + threadIdx.x;
  y[threadIdx.x] = p[0] + p[32] + p[64] + p[96] + p[128] + p[160] + p[192] + p[224];
}
template <int WIDTH>
__device__ float rows(const float* x) {
  __shared__ float tile[32][WIDTH];
  for (int i = 0; i < 32; i++) tile[i][threadIdx.x] = x[i * 32 + threadIdx.x];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 32; k++) sum += tile[threadIdx.x][k];
  return sum;
}
__global__ void rows_of_32(const float* x, float* y, int n) { y[threadIdx.x] = rows<32>(x); }
__global__ void rows_of_33(const float* x, float* y, int n) { y[threadIdx.x] = rows<33>(x); }
__global__ void rows_of_34(const float* x, float* y, int n) { y[threadIdx.x] = rows<34>(x); }
__global__ void one_counter(const float* x, float* y, int n) { atomicAdd((int*)y, n); }
__global__ void counters_by_thread(const float* x, float* y, int n) { atomicAdd((int*)y + threadIdx.x / 32, n); }
__global__ void one_float(const float* x, float* y, int n) { atomicAdd(y, 1.0f); }
__global__ void if_the_first(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < 32 * n; i += blockDim.x)
    if (((const int*)x)[i] != 5) sum += y[i];
  y[threadIdx.x] = sum;
}
__global__ void if_positive(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < 32 * n; i += blockDim.x)
    if (x[i] >= 0) sum += y[i];
  y[threadIdx.x] = sum;
}
__global__ void either_value(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < 32 * n; i += blockDim.x) {
    float v = x[i];
    sum += (v > 0 ? v : 0.5f) * y[i];
  }
  y[threadIdx.x] = sum;
}
__global__ void single(const float* x, float* y, int n) {
  float most = 0;
  int bits = 0;
  for (int i = 0; i < n; i++) {
    most = fmaxf(most, fminf(x[i], 1.0f));
    bits += __popc(__float_as_int(x[i]) + 1);
  }
  y[threadIdx.x] = most + bits;
}
__global__ void words(const float* x, float* y, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum ^= __float_as_int(x[i]);
  y[threadIdx.x] = sum;
}
__global__ void dot_products(const float* x, float* y, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    const int word = __float_as_int(x[i]);
    sum ^= __byte_perm(__dp4a(word, sum, __dp2a_lo(word, sum, 7)), word, 0x3172);
  }
  y[threadIdx.x] = sum;
}
__global__ void squares(const float* x, float* y, int n) {
  float v = x[threadIdx.x];
  y[threadIdx.x] = powf(v, 2.0f) + powf(3.0f, 2.5f);
  y[threadIdx.x + 32] = pow(v, 2);
}
__global__ void into_one_float(const float* x, float* y, int n) {
  __shared__ float sum;
  atomicAdd(&sum, x[threadIdx.x]);
}
__global__ void into_many_floats(const float* x, float* y, int n) {
  __shared__ float sums[16];
  atomicAdd(&sums[threadIdx.x % 16], x[threadIdx.x]);
}
__global__ void doubles(const float* x, float* y, int n) {
  double v = x[threadIdx.x];
  y[threadIdx.x] = exp(v) + log(v + 1) + pow(v, n + 0.5) + sin(v);
}
"""
NAMES = [line.split("void ")[1].split("(")[0] for line in KERNELS.splitlines() if line.startswith("__global__")]


@pytest.fixture(scope="module")
def module():
    arguments = "(x.data_ptr<float>(), y.data_ptr<float>(), 64)"
    text, declared = KERNELS, ""
    for name in NAMES:
        head = f"void run_{name}(torch::Tensor x, torch::Tensor y)"
        text += f"{head} {{ {name}<<<1, 32>>>{arguments}; }}\n"
        declared += f"{head};\n"
    return simt.load_inline("test_compiled", declared, text, functions=[f"run_{name}" for name in NAMES])


def count(module, name):
    x, y = torch.zeros(32 * N), torch.zeros(32 * N)
    with simt.count() as report:
        getattr(module, f"run_{name}")(x, y)
    (launch,) = report.launches
    return launch


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("along_rows", N / 16),  # copies, whose loads are under way at once
        ("down_columns", N / 16),
        ("by_warps", N / 16),
        ("one_by_one", N / 4),  # fewer copies where the step is a constant of several elements
        ("exponentials", N / 4),
        ("divided", 1 + N),  # a branch for rare operands, which later loads wait for
        ("divided_side_by_side", 3),
        ("roots", N),
        ("reciprocal_roots", N / 16),
        ("tangents", N / 4),  # fewer where the body is not simple
        ("exponentials_of_some", N / 4),
        ("some", N / 16),
        ("unsigned_index", N / 4),
        ("by_blocks", N),
        ("stored_between", N),  # a store may change what is loaded next
        ("chased", N),
        ("three_turns", 3),  # too few for the copies
        ("side_by_side", 1),
        ("if_the_first", 2 * N),  # whether there is a second load depends on the first
        ("if_positive", 2 * N),
        ("either_value", N),
    ],
)
def test_loads_that_are_under_way_together(module, name, rounds):
    """Does a warp wait once for the loads that nvcc places before their use, and for each of the others?"""
    assert count(module, name).compiled.load_rounds == pytest.approx(rounds)


@pytest.mark.parametrize(("name", "words"), [("rows_of_32", 4), ("rows_of_33", 1), ("rows_of_34", 2)])
def test_neighbouring_words_of_shared_memory_are_loaded_at_once(module, name, words):
    """Does nvcc load as many words at once as the rows' length keeps aligned?"""
    joined = count(module, name).compiled.joined_requests
    assert joined == pytest.approx(32 - 32 / words)


def test_joined_loads_keep_their_conflicts(module):
    """Do 32 lanes that read rows of 32 words from one bank still take 32 passes for each load of 16 bytes?"""
    launch = count(module, "rows_of_32")
    loads = launch.counters.shared_loads
    assert loads.wavefronts == 32 * 32  # one word at a time
    assert loads.wavefronts - launch.compiled.joined_wavefronts == pytest.approx(8 * 32)


def test_a_warps_integers_are_added_up_first(module):
    """Is one address for all threads known as such, and one that depends on the thread not?"""
    assert count(module, "one_counter").compiled.joined_atomics == 31
    assert count(module, "counters_by_thread").compiled.joined_atomics == 0
    assert count(module, "one_float").compiled.joined_atomics == 0


def test_floats_are_added_one_after_the_other(module):
    """Are the lanes that add floats to one address counted, and do they take three times as long as integers, as
    measured (benchmarks/micro/atomics.cu: "one float" and "maximum")?
    """
    floats = Work.of(count(module, "one_float"))
    assert floats.float_atomics == 32
    seconds = predict(floats).terms["atomics"]
    assert seconds == pytest.approx(32 * 7.36e-3 / 2**22, rel=0.02)
    integers = dataclasses.replace(floats, float_atomics=0)
    assert 2.5 < seconds / predict(integers).terms["atomics"] < 3.5


def test_functions_are_counted_as_what_a_gpu_has_for_them(module):
    """Is the larger of two floats one instruction, a count of bits one of the special functions, and a power of doubles
    not like a logarithm?
    """
    mix = count(module, "single").counters.mix
    assert (mix["fp32_least"], mix["fp32_special"], mix.get("calls", 0)) == (2 * 32 * N, 32 * N, 0)
    mix = count(module, "squares").counters.mix  # nvcc calls pow() for squares, and not for constants
    assert (mix["fp32_pow"], mix["fp64_pow"]) == (32, 32)
    mix = count(module, "doubles").counters.mix
    assert [mix[f"fp64_{name}"] for name in ("exp", "log", "pow", "other")] == [32] * 4


def test_a_product_of_words_is_one_instruction(module):
    """Are four products of bytes with their sum one instruction each time, as is a choice of bytes?"""
    plain, products = (count(module, name).counters.mix for name in ("words", "dot_products"))
    assert products["indexing"] - plain["indexing"] == pytest.approx(3 * 32 * N)
    assert products.get("calls", 0) == 0


def test_threads_that_add_to_one_shared_float_wait_for_each_other(module):
    """Are attempts to add to one place told from others, and does a block of 32 warps wait for two sums about as long
    as it was fitted to (benchmarks/unseen/student_groupnorm.cu: images, a block each)?
    """
    crowd, others = (Work.of(count(module, f"into_{name}")) for name in ("one_float", "many_floats"))
    assert (crowd.shared_float_rounds, crowd.shared_float_crowds) == (32, 32)
    assert (others.shared_float_rounds, others.shared_float_crowds) == (2, 0)
    twice = dataclasses.replace(crowd, threads=1024, shared_float_rounds=64 * 32, shared_float_crowds=64 * 32)
    assert predict(twice).terms["latency"] == pytest.approx(75e-6, rel=0.15)


def test_random_places_are_told_from_rows_and_columns():
    """Is what threads read at random places of an array, and other blocks again, known as that, and a column not, and
    not what lies near?
    """
    text = """
    __global__ void gather(const float* x, const int* at, float* y) {
      int i = blockIdx.x * 256 + threadIdx.x;
      y[i] = x[at[i]];
    }
    void run(torch::Tensor x, torch::Tensor at, torch::Tensor y) {
      gather<<<y.numel() / 256, 256>>>(x.data_ptr<float>(), at.data_ptr<int>(), y.data_ptr<float>());
    }
    """
    declared = "void run(torch::Tensor x, torch::Tensor at, torch::Tensor y);"
    module = simt.load_inline("test_gather", declared, text, functions=["run"])
    n = 1 << 16
    x, y = torch.zeros(n), torch.zeros(n)
    drawn = torch.randint(n, (n,), generator=torch.Generator().manual_seed(1), dtype=torch.int32)
    work = []
    rows_first = torch.arange(n, dtype=torch.int32)
    near = rows_first // 1024 * 1024 + drawn % 1024
    for at in (drawn, rows_first, rows_first.view(256, -1).t().flatten().contiguous(), near):
        with simt.count() as report:
            module.run(x, at, y)
        work.append(Work.of(report.launches[0]))
    random, rows, columns, nearby = work
    # 256 threads meet nearly 256 of 8,192 sectors, in each of 256 blocks
    assert random.random_by_block == pytest.approx(32 * n, rel=0.03)
    assert random.random_unique == pytest.approx(4 * n, rel=0.01)
    assert rows.random_by_block == columns.random_by_block == nearby.random_by_block == 0
    assert columns.block_unique_read > 8 * n * 4  # a sector of its own for each thread, too


@pytest.mark.skipif(not (DATA / "ncu.json").exists(), reason="benchmarks/data/ncu.json is missing")
def test_instructions_are_near_ncus():
    """Over the micro-kernels, are the predicted instructions within 15 % of those that ncu counted, in the median?"""
    programs = json.loads((DATA / "ncu.json").read_text())["programs"]
    known = {f"{name}: {row['label']}": row for name, program in programs.items() for row in program["large"]}
    rows = [row for row in json.loads((DATA / "model.json").read_text())["rows"] if row["name"] in known]
    errors = [math.log(instructions(Work(**row["work"]))[0] / known[row["name"]]["instructions"]) for row in rows]
    assert len(errors) > 200
    assert statistics.median(abs(error) for error in errors) < 0.15
    assert abs(statistics.median(errors)) < 0.06
