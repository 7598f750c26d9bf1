"""Does the model's work of a launch hold what the kernel's text says: L1's passes, atomics, structures, halves?"""

import json
from pathlib import Path

import pytest
import torch

import simt
from simt.counting.time_model import predict
from simt.counting.work import Work

DATA = Path(__file__).resolve().parents[3] / "benchmarks" / "data"
KERNELS = """
#include <cuda_fp16.h>
struct Triple { float a, b, c; };
__global__ void triples(float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i];
  ((Triple*)y)[i] = {v, 2 * v, 3 * v};
}
__global__ void columns(float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  for (int k = 0; k < 3; k++) y[i * 3 + k] = x[i * 3 + k];
}
__global__ void counter(float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  y[i + 64] = x[i];
  if (threadIdx.x == 0) atomicAdd((int*)y, 1);
}
__global__ void weights_for_all(float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 64; k++) sum += x[k * 32 + threadIdx.x];
  y[i] = sum;
}
__global__ void halves(float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  __half2 a = __floats2half2_rn(x[i], 2.0f), sum = a;
  for (int k = 0; k < 10; k++) sum = __hfma2(sum, a, sum);
  y[i] = __low2float(__hadd2(sum, a));
}
__global__ void own_array(float* x, float* y) {
  int kept[16], i = blockIdx.x * 32 + threadIdx.x, at = 0;
  for (int k = 0; k < 16; k++) kept[k] = 3 * k + 1;
  for (int k = 0; k < 20; k++) at = kept[(at + (int)x[i]) & 15], kept[at & 15] = k;
  y[i] = at;
}
__global__ void diagonals(float* x, float* y) { y[threadIdx.x] = x[threadIdx.x * 257]; }
__global__ void rows(float* x, float* y) { y[threadIdx.x] = x[threadIdx.x * 256]; }
"""
NAMES = [line.split("void ")[1].split("(")[0] for line in KERNELS.splitlines() if line.startswith("__global__")]
BLOCKS = 6


@pytest.fixture(scope="module")
def module():
    heads = [f"void run_{name}(torch::Tensor x, torch::Tensor y)" for name in NAMES]
    text = KERNELS + "".join(
        f"{head} {{ {name}<<<{BLOCKS}, 32>>>(x.data_ptr<float>(), y.data_ptr<float>()); }}\n"
        for head, name in zip(heads, NAMES)
    )
    return simt.load_inline(
        "test_work", "".join(f"{head};\n" for head in heads), text, functions=[f"run_{n}" for n in NAMES]
    )


def count(module, name) -> Work:
    x, y = torch.zeros(32 * 300), torch.zeros(32 * 300)
    with simt.count() as report:
        getattr(module, f"run_{name}")(x, y)
    (launch,) = report.launches
    return Work.of(launch)


def test_stores_of_a_structure_are_joined_and_a_loops_are_not(module):
    """Is each store of three in a row joined to the others, and none between which the thread loads?"""
    work = count(module, "triples")
    assert work.store_sectors == BLOCKS * 3 * 12 and work.joined_sectors == work.store_sectors
    assert count(module, "columns").joined_sectors == 0


def test_atomics_are_counted_where_they_are(module):
    """Is the counter's sector told apart from those that are stored?"""
    work = count(module, "counter")
    assert work.atomics == BLOCKS and work.atomic_unique > 0
    alone = Work(**{**vars(work), "atomics": 1e6, "atomic_passes": 1e6, "atomic_unique": 32})
    spread = Work(**{**vars(alone), "atomic_unique": 1e6})
    assert predict(alone).terms["atomics"] > 50 * predict(spread).terms["atomics"]


def test_what_every_block_reads_is_shared(module):
    """Is an array that all blocks read told apart from one of which each reads its own part?"""
    work = count(module, "weights_for_all")
    assert work.common_by_block == BLOCKS * work.common_unique == BLOCKS * 64 * 128
    assert count(module, "triples").common_by_block == 0
    apart = Work(**{**vars(work), "blocks": 8192, "block_unique_read": 4e9, "load_sectors": 4e9 / 32})
    shared = Work(**{**vars(apart), "common_by_block": 4e9, "common_unique": 1e6})
    assert predict(apart).terms["L2 bytes"] > 4 * predict(shared).terms["L2 bytes"]


def test_operations_of_pairs_of_halves_are_one_each(module):
    """Are ten multiply-adds, an addition and three conversions that many operations, and none of doubles?"""
    mix = count(module, "halves").mix
    assert mix["half"] == BLOCKS * 14
    assert not any(name.startswith("fp64") for name in mix)


def test_accesses_to_a_threads_own_array_are_counted(module):
    """Are a load and a store at an unknown index, twenty times, accesses to local memory, but for the last store?"""
    found = count(module, "own_array")
    assert found.mix["local"] + found.local_sectors / 4 >= BLOCKS * 39


@pytest.mark.parametrize(("name", "passes"), [("diagonals", (8, 16)), ("rows", (32, 32))])
def test_lanes_in_lines_of_their_own_share_passes_unless_banks_collide(module, name, passes):
    """Are 32 lines looked up four at a time at best, and read one by one where all words are in one bank?"""
    assert passes[0] <= count(module, name).load_wavefronts / BLOCKS <= passes[1]


def test_passes_of_l1_are_near_ncus():
    """Are the passes of strided, gathered, wide and transposed accesses within a third of what ncu counted on an H200?

    (ncu's are all passes of the load-store unit. Each request takes about a sixth of a pass besides.)
    """
    rows = {row["name"]: row for row in json.loads((DATA / "model.json").read_text())["rows"]}
    programs = json.loads((DATA / "ncu.json").read_text())["programs"]
    far = {}
    for program in ("strides", "structs", "gather", "rows", "transpose", "offsets", "widths"):
        for time, ncu in zip(programs[program]["times"], programs[program]["large"], strict=True):
            work = Work(**rows[f"{program}: {time['label']}"]["work"])
            requests = work.loads + work.stores
            counted = work.load_wavefronts + work.store_wavefronts + requests / 6
            measured = ncu["lsu_wavefronts"] - ncu["shared_wavefronts"]
            if not 0.75 < counted / measured < 1.34:
                far[f"{program}: {time['label']}"] = counted / measured
    assert far == {}
