"""Asynchronous copies, cuda::barrier and cuda::pipeline: is each call against the rules one sentence with its line?"""

from __future__ import annotations

import pytest

import simt
from tests.simt.include.async_kernels import HEADERS, X, make_declarations, run_kernel
from tests.simt.kernels_of_expressions import _INCLUDES, ON_GPU, load

_FAULTS = (
    HEADERS
    + """
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void bad(const float* x, float* out, int n) {
  __shared__ __align__(16) float room[68];
  __shared__ Barrier bar;
  auto block = cg::this_thread_block();
  int t = threadIdx.x;
  float own[4];
  if (n == 0) __pipeline_memcpy_async(room, x, 12);                // size
  if (n == 1) __pipeline_memcpy_async(room + 1, x, 8);             // target
  if (n == 2) __pipeline_memcpy_async(room, x + 2, 16);            // source
  if (n == 3) __pipeline_memcpy_async(own, x, 4);                  // not shared
  if (n == 4) __pipeline_memcpy_async(out, x, 4);                  // global
  if (n == 5) __pipeline_memcpy_async(room, x, 8, 9);              // zeros
  if (n == 6) cg::memcpy_async(block, room, x + 1, cuda::aligned_size_t<16>(64));    // promise
  if (n == 11) cg::memcpy_async(block, (char*)room + 5, (const char*)x + 3, 50);     // odd
  if (n == 12) cg::memcpy_async(block, room, x, 30);               // part of one
  if (n == 7) bar.arrive_and_wait();                               // not made
  if (n > 7 && n < 11) {
    if (t == 0) init(&bar, n == 8 ? 65 : 32);
    block.sync();
  }
  if (n == 8) bar.arrive_and_wait();                               // one is missing
  if (n == 9) bar.arrive(33);                                      // too many
  if (n == 10) {
    cuda::atomic_ref<int> a(*(int*)((char*)out + 2));              // atomic
    a.fetch_add(1);
  }
  out[t] = room[t];
}
KERNEL(bad)
"""
)


@pytest.fixture(scope="module")
def faults():
    if ON_GPU:
        pytest.skip("a GPU does not tell")
    return load(_FAULTS, make_declarations(["bad"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "reason", "words", "marker"),
    [
        (0, "misaligned", "copies 12 bytes. Copy 4, 8 or 16 bytes at a time.", "// size"),
        (
            1,
            "misaligned",
            "needs a target address that is a multiple of the size, 8 bytes; it is 4 past one.",
            "// target",
        ),
        (
            2,
            "misaligned",
            "needs a source address that is a multiple of the size, 16 bytes; it is 8 past one.",
            "// source",
        ),
        (3, "illegal_address", "its target is not in the block's shared memory", "// not shared"),
        (4, "illegal_address", "its target is not in the block's shared memory", "// global"),
        (5, "misaligned", "cannot fill 9 of 8 bytes with zeros", "// zeros"),
        (
            6,
            "misaligned",
            "copies pieces of 16 bytes, from its type or aligned_size_t, but the source is not a multiple of that",
            "// promise",
        ),
        (
            11,
            "misaligned",
            "copies pieces of 2 bytes, from its type or aligned_size_t, but the target is not a multiple",
            "// odd",
        ),
        (
            12,
            "misaligned",
            "copies pieces of 4 bytes, from its type or aligned_size_t, but the size is not a multiple",
            "// part of one",
        ),
        (7, "barrier_divergence", "runs before init() of the barrier", "// not made"),
        (8, "barrier_divergence", "and 63 others wait in cuda::barrier::arrive_and_wait()", "// one is missing"),
        (9, "barrier_divergence", "more threads arrive than the expected 32", "// too many"),
        (10, "misaligned", "needs an address that is a multiple of 4 bytes", "// atomic"),
    ],
)
def test_misuse_is_told_with_its_line(faults, n, reason, words, marker):
    """Is a call against the rules one clear sentence with its line?"""
    with pytest.raises(simt.KernelError) as caught:
        run_kernel(faults, "bad", X, 256, n)
    lines = (_INCLUDES + _FAULTS).split("\n")
    line = next(i for i, text in enumerate(lines, 1) if text.endswith(marker))
    assert caught.value.reason == reason and caught.value.line == line
    assert words in caught.value.message and f"line {line}" in caught.value.message
