"""Does the sentence on what to try next name the cause that makes a right kernel slow?

Each kernel computes what it should and wastes one thing, which was planted. They are counted as a submission is, on
memory that is never written.
"""

import dataclasses
import re

import pytest
import torch

import simt
from grader.judging import advice, full_size, prediction
from grader.worker import tallies
from grader.worker.messages import TalliedLaunch
from simt.counting.time_model import GPUS, predict
from simt.counting.what_if import CAUSES, Waste, find_savings
from simt.counting.work import Work

N = 1 << 24
SIDE = 1 << 12

# name: (kernel's body with x, y, n and w, launches, words that the sentence must contain)
SLOW = {
    "rows_read_by_columns": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2.0f * x[i % w * w + i / w];",
        "<<<n / 256, 256>>>",
        "Let neighbouring threads read neighbouring addresses",
    ),
    "rows_written_by_columns": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i % w * w + i / w] = 2.0f * x[i];",
        "<<<n / 256, 256>>>",
        "Let neighbouring threads write neighbouring addresses",
    ),
    "structs_of_eight": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n / 8) return; float s = 0;\n"
        "for (int k = 0; k < 8; k++) s += x[8 * i + k]; y[i] = s;",
        "<<<n / 8 / 256, 256>>>",
        "Let neighbouring threads read neighbouring addresses",
    ),
    "tile_without_padding": (
        "__shared__ float t[32][32]; int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32;\n"
        "for (int k = threadIdx.y; k < 32; k += 8) t[k][threadIdx.x] = x[(r + k) * w + c];\n"
        "__syncthreads();\n"
        "for (int p = 0; p < 8; p++) for (int k = threadIdx.y; k < 32; k += 8) t[threadIdx.x][k] += 1.0f;\n"
        "__syncthreads();\n"
        "for (int k = threadIdx.y; k < 32; k += 8) y[(r + k) * w + c] = t[k][threadIdx.x];",
        "<<<dim3(w / 32, w / 32), dim3(32, 8)>>>",
        "Pad the array's rows by one element",
    ),
    "branches_by_parity": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = x[i];\n"
        "if (threadIdx.x % 4 == 0) { for (int k = 0; k < 200; k++) v = v * 1.01f + 0.5f; }\n"
        "else if (threadIdx.x % 4 == 1) { for (int k = 0; k < 200; k++) v = v * 0.99f - 0.5f; }\n"
        "else if (threadIdx.x % 4 == 2) { for (int k = 0; k < 200; k++) v = v * 0.98f + 0.25f; }\n"
        "else { for (int k = 0; k < 200; k++) v = v * 1.02f - 0.25f; }\n"
        "y[i] = v;",
        "<<<n / 256, 256>>>",
        "take the same branch",
    ),
    "one_lane_works": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = x[i];\n"
        "if (threadIdx.x % 32 == 0) for (int k = 0; k < 300; k++) v = v * 1.01f + 0.5f;\n"
        "y[i] = v;",
        "<<<n / 256, 256>>>",
        "take the same branch",
    ),
    "eight_blocks": (
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 64; i += gridDim.x * blockDim.x)\n"
        "  y[i] = 2.0f * x[i];",
        "<<<8, 256>>>",
        "Split the work into more blocks",
    ),
    "needless_barriers": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; float v = i < n ? x[i] : 0.0f;\n"
        "for (int k = 0; k < 40; k++) { v += 0.5f; __syncthreads(); }\n"
        "if (i < n) y[i] = v;",
        "<<<n / 1024, 1024>>>",
        "Remove those that order nothing",
    ),
    "in_double": (  # four chains: one chain in float takes as long (benchmarks/micro/fma.cu, measured)
        # four chains: of one, each step waits for the last, and float takes as long (measured: micro/fma.cu)
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n"
        "double a = x[i], b = -a, c = a + 1, d = a;\n"
        "for (int k = 0; k < 60; k++)\n"
        "  a = a * 1.0001 + 0.5, b = b * 1.0002 + 0.5, c = c * 1.0003 + 0.5, d = d * 1.0004 + 0.5;\n"
        "y[i] = a + b + c + d;",
        "<<<n / 256, 256>>>",
        "is computed in double",
    ),
    "atomics_on_one_sum": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(&y[i % 32], x[i]);",
        "<<<n / 256, 256>>>",
        "Add up within the block first",
    ),
    "atomics_on_a_shared_sum": (
        "__shared__ float sum; if (threadIdx.x == 0) sum = 0.0f; __syncthreads();\n"
        "for (int i = threadIdx.x; i < 4096; i += 256) atomicAdd(&sum, x[blockIdx.x * 4096 + i]);\n"
        "__syncthreads(); if (threadIdx.x == 0) y[blockIdx.x] = sum;",
        "<<<n / 4096, 256>>>",
        "add up what it reads in a register",
    ),
    "divisions": (
        "long i = (long)blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; long h = w / 2, d = w / 4;\n"
        "long a = i % w, b = i / w % h, c = i / w / h % d, e = i / (w * h * d);\n"
        "y[((e * d + c) * h + b) * w + a] = x[((e * d + c) * h + b) * w + a] * 2.0f;",
        "<<<n / 256, 256>>>",
        "/ and % of integers take",
    ),
    "blocks_of_eight": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = x[i];\n"
        "for (int k = 0; k < 100; k++) v = v * 1.01f + 0.5f;\n"
        "y[i] = v;",
        "<<<n / 8, 8>>>",
        "Use a multiple of 32 threads",
    ),
    "blocks_of_one_warp": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;",
        "<<<n / 32, 32>>>",
        "A multiprocessor of the H200 runs at most 32 blocks at once, which is 32 of its 64 warps here",
    ),
    "one_warp_per_row": (
        "float s = 0; for (int k = threadIdx.x; k < 1024; k += 32) s += x[blockIdx.x * 1024 + k];\n"
        "for (int o = 16; o; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o); if (threadIdx.x == 0) y[blockIdx.x] = s;",
        "<<<n / 1024, 32>>>",
        "has only 32 threads",
    ),
    "window_of_64": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n - 64) return; float s = 0;\n"
        "for (int k = 0; k < 64; k++) s += x[i + k];\n"
        "y[i] = s;",
        "<<<n / 256, 256>>>",
        "Keep them in shared memory or in registers",
    ),
    "much_shared_memory": (
        "__shared__ float t[11000]; int i = blockIdx.x * blockDim.x + threadIdx.x; t[threadIdx.x] = i < n ? x[i] : 0;\n"
        "__syncthreads(); float v = t[31 - threadIdx.x]; if (i < n) y[i / 32 * 32 + 31 - threadIdx.x] = v * 2.0f;",
        "<<<n / 32, 32>>>",
        "Use smaller tiles",
    ),
}
MANY, TWICE = "five_launches", "two_passes"


@pytest.fixture(scope="module")
def module():
    text = "__global__ void scale(const float* x, float* y, int n, int w) {\n"
    text += "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 1.5f; }\n"
    names = []
    for name, (body, launch, _) in SLOW.items():
        arguments = "(x.data_ptr<float>(), y.data_ptr<float>(), n, w)"
        text += f"__global__ void {name}(const float* x, float* y, int n, int w) {{\n{body}\n}}\n"
        text += f"void run_{name}(torch::Tensor x, torch::Tensor y, int64_t n, int64_t w) {{\n"
        text += f"  {name}{launch}{arguments};\n}}\n"
        names.append(f"run_{name}")
    text += f"void run_{MANY}(torch::Tensor x, torch::Tensor y, int64_t n, int64_t w) {{\n"
    text += "  float *a = x.data_ptr<float>(), *b = y.data_ptr<float>();\n"
    text += "  for (int k = 0; k < 5; k++) scale<<<n / 256, 256>>>(k % 2 ? b : a, k % 2 ? a : b, n, w);\n}\n"
    text += "__global__ void total(const float* x, float* y, int per) {\n  float sum = 0.0f;\n"
    text += "  for (int i = threadIdx.x; i < per; i += 512) sum += x[(long)blockIdx.x * per + i];\n"
    text += "  atomicAdd(&y[blockIdx.x], sum);\n}\n"
    text += f"void run_{TWICE}(torch::Tensor x, torch::Tensor y, int64_t n, int64_t w) {{\n"
    text += "  total<<<256, 512>>>(x.data_ptr<float>(), y.data_ptr<float>(), n / 256);\n"
    text += "  scale<<<n / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, w);\n}\n"
    names += [f"run_{MANY}", f"run_{TWICE}"]
    declared = "".join(f"void {name}(torch::Tensor x, torch::Tensor y, int64_t n, int64_t w);" for name in names)
    return simt.load_inline("test_advice", declared, text, functions=names)


def advise(module, name, gpu="H200"):
    x, y = torch.empty(N), torch.empty(N)
    with simt.count(sample=full_size.BLOCKS, partial=True) as report:
        getattr(module, f"run_{name}")(x, y, N, SIDE)
    launches = [prediction.read_launch(one, gpu) for one in tallies.describe(report).launches]
    return advice.advise(launches, gpu, 8 * N, 4 * N)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_planted_cause_is_named(module, name):
    """Does the sentence name what the kernel wastes?"""
    assert SLOW[name][2] in advise(module, name).text


@pytest.mark.slow
def test_many_launches(module):
    """Does it say to fuse where five kernels pass over one array?"""
    assert "5 launches pass intermediate results through memory. Fuse" in advise(module, MANY).text


@pytest.mark.slow
def test_an_input_read_twice_is_no_result_passed_on(module):
    """Does it not say to fuse where a second kernel only reads the input again?"""
    assert "fuse" not in advise(module, TWICE).text.lower()


@pytest.mark.slow
def test_no_gain_is_beyond_what_memory_allows(module):
    """Is the factor of many launches, and of tiny blocks, no larger than the time over that of the bytes?"""
    least = 8 * N / GPUS["H200"].dram
    for name in (MANY, "blocks_of_eight", "one_lane_works", "eight_blocks"):
        x, y = torch.empty(N), torch.empty(N)
        with simt.count(sample=full_size.BLOCKS, partial=True) as report:
            getattr(module, f"run_{name}")(x, y, N, SIDE)
        launches = [prediction.read_launch(one, "H200") for one in tallies.describe(report).launches]
        told = re.search(r"([\d.,]+) times as fast", advice.advise(launches, "H200", 8 * N, 4 * N).text)
        assert told and float(told[1].replace(",", "")) <= 1.06 * sum(one.seconds for one in launches) / least


def test_a_smaller_block_costs_the_sectors_that_its_warp_uses_in_part():
    """Is the gain of blocks of 256 threads over those of two that of full sectors, about?"""
    n = 1e8
    loads = {"loads": n / 2, "load_rounds": n / 2, "load_wavefronts": n / 2, "load_sectors": n / 2}
    work = Work(
        blocks=int(n / 2), threads=2, shared=0, ideal_load_sectors=n / 2, unique_read=4 * n, block_unique_read=16 * n,
        mix={"other": 10 * n}, **loads,
    )  # fmt: skip
    saved = find_savings(work, Waste(lanes=2, load_lanes=n, load_bytes=4 * n), "H200")["part warps"]
    assert predict(work, "H200").seconds > 10 * saved


def test_two_threads_that_loop_over_a_row_could_be_256():
    """Is it the loop that larger blocks shorten, where a block's two threads take all of its turns?"""
    blocks, turns = 4096, 8192
    rounds = float(blocks * turns)
    loads = {"loads": rounds, "load_rounds": rounds, "load_wavefronts": rounds, "load_sectors": rounds}
    read = 8.0 * rounds
    work = Work(
        blocks=blocks, threads=2, shared=0, ideal_load_sectors=rounds, unique_read=read, block_unique_read=read,
        mix={"other": 10 * rounds}, **loads,
    )  # fmt: skip
    saved = find_savings(work, Waste(lanes=2, load_lanes=2 * rounds, load_bytes=read), "H200")["part warps"]
    assert predict(work, "H200").seconds > 8 * saved


def test_a_double_costs_its_conversions():
    """Are those of operands and results saved with the operations in double?"""
    mix = {"fp64_mul": 1e9, "fp64_add": 1e9, "convert": 4e9}
    work = Work(blocks=10_000, threads=256, shared=0, unique_read=1e6, mix=mix)
    saved = find_savings(work, Waste(), "H200")["doubles"]
    assert predict(work, "H200").seconds > 4 * saved


@pytest.mark.parametrize(
    ("have", "ideal", "words"), [(32, 4, ("32", "4")), (1.6, 1.5, ("1.6", "1.5")), (16, 12, ("16.0", "12.0"))]
)
def test_two_amounts_are_not_told_as_one(have, ideal, words):
    assert tuple(advice._amount(have, ideal, one) for one in (have, ideal)) == words


def test_what_a_chip_cannot_hold_is_not_to_be_kept_there():
    """Is a block told to keep its bytes only where a multiprocessor can hold them?"""
    loads = {"loads": 1e7, "load_rounds": 1e7, "load_wavefronts": 1e7, "load_sectors": 4e7, "ideal_load_sectors": 4e7}
    fits = Work(blocks=100, threads=256, shared=0, block_unique_read=1e7, unique_read=1e7, mix={"other": 1e8}, **loads)
    assert "reading again" in find_savings(fits, Waste(), "H200")
    large = dataclasses.replace(fits, block_unique_read=100 * 4_000_000)
    assert "reading again" not in find_savings(large, Waste(), "H200")


def test_every_cause_has_a_sentence():
    """Is there a sentence for each kind of waste that simt knows?"""
    assert set(advice.SENTENCES) == set(CAUSES)


# Of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": blocks and warps that a
# multiprocessor holds at most (7.5, 8.0, 8.9, 9.0).
RESIDENT = {"T4": (16, 32), "A100": (32, 64), "L4": (24, 48), "H100": (32, 64), "H200": (32, 64)}


@pytest.mark.parametrize("gpu", RESIDENT)
def test_blocks_of_one_warp_fill_half_of_a_multiprocessor(gpu):
    """Are blocks of 32 threads a kind of waste where they start, and blocks that fill a multiprocessor never?"""
    blocks, warps = RESIDENT[gpu]
    grid = 1_000_000
    loads = {"loads": 1e6, "load_rounds": 1e6, "load_wavefronts": 1e6, "load_sectors": 4e6, "ideal_load_sectors": 4e6}
    work = Work(blocks=grid, threads=32, shared=0, unique_read=1.28e8, block_unique_read=1.28e8, mix={}, **loads)
    saved = find_savings(work, Waste(), gpu)
    assert "small blocks" in saved and blocks / warps == 0.5
    assert "small blocks" not in find_savings(dataclasses.replace(work, blocks=grid // 2, threads=64), Waste(), gpu)
    assert "small blocks" not in find_savings(dataclasses.replace(work, blocks=grid // 8, threads=256), Waste(), gpu)
    assert "small blocks" not in find_savings(dataclasses.replace(work, blocks=100), Waste(), gpu)
    tallied = TalliedLaunch("k", [grid, 1, 1], [32, 1, 1], 1, {}, {}, {})
    words = advice._describe("small blocks", advice.Counted(tallied, work, Waste(), predict(work, gpu)), None, gpu)
    assert f"of the {gpu} runs at most {blocks} blocks at once, which is {blocks} of its {warps} warps here" in words


def test_a_block_of_one_thread_is_counted_in_the_singular():
    """Does the advice on blocks of one thread say "1 thread"?"""
    work = Work(blocks=64, threads=1, shared=0, unique_read=4.0, block_unique_read=4.0, mix={}, loads=64.0)
    tallied = TalliedLaunch("k", [64, 1, 1], [1, 1, 1], 1, {}, {}, {})
    for cause, says in (("part warps", "blocks of 1 thread leave"), ("small blocks", "a block has only 1 thread. ")):
        counted = advice.Counted(tallied, work, Waste(), predict(work, "H200"))
        assert says in advice._describe(cause, counted, None, "H200")


def test_one_block_is_counted_in_the_singular():
    """Does the advice on too few blocks agree with their number?"""
    tallied = TalliedLaunch("k", [1, 1, 1], [256, 1, 1], 1, {}, {}, {})
    for blocks, says in ((1, "In `k`, 1 block leaves most of"), (20, "In `k`, 20 blocks leave most of")):
        work = Work(blocks=blocks, threads=256, shared=0, unique_read=4.0, block_unique_read=4.0, mix={}, loads=64.0)
        counted = advice.Counted(tallied, work, Waste(), predict(work, "H200"))
        assert advice._describe("few blocks", counted, None, "H200").startswith(says)


@pytest.mark.parametrize(
    "load, store, says",
    [
        (4, 4, "a thread loads 4 bytes at a time. Access 16 bytes at once, as a float4"),
        (2, 2, "a thread loads 2 bytes at a time. Access 16 bytes at once, as a uint4"),
        (1, 4, "a thread loads 1 byte at a time. Access 16 bytes at once, as a uint4"),
        (16, 4, "a thread stores 4 bytes at a time. Access 16 bytes at once, as a float4"),
    ],
)
def test_narrow_accesses_are_named_with_their_size(load, store, says):
    """Does the advice on narrow accesses say how many bytes are accessed, and whether they are loaded or stored?"""
    sectors = {"load_sectors": 1e6 * load, "store_sectors": 1e6 * store}
    work = Work(
        blocks=4000, threads=256, shared=0, loads=1e6, stores=1e6, load_rounds=1e6, mix={}, **sectors,
        **{f"ideal_{name}": value for name, value in sectors.items()},
    )  # fmt: skip
    waste = Waste(load_lanes=32e6, store_lanes=32e6, load_bytes=32e6 * load, store_bytes=32e6 * store)
    launch = TalliedLaunch("k", [4000, 1, 1], [256, 1, 1], 1, {}, {}, {})
    counted = advice.Counted(launch, work, waste, predict(work, "H200"))
    assert says in advice._describe("narrow accesses", counted, None, "H200")


def test_each_sentence_reads_well():
    """Does each advice name the waste in a sentence and what to do in the next one, without a colon, so that what is
    put in front of it may have one?
    """
    for sentence in advice.SENTENCES.values():
        words = re.sub(r"\{\w+[^}]*\}", "", sentence)  # without the fields, whose formats have colons
        assert sentence.startswith("In {kernel}, ") and re.search(r"\. [A-Z]", sentence) and ":" not in words
