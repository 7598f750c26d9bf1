"""What orders asynchronous copies with other accesses: does the check leave every sound way alone, and find each where
one wait is left out?
"""

import pytest
import torch

import simt

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU checks nothing")

DEVICE = (
    r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

constexpr int B = 64;

__device__ void copy(float* to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), """
    r""""l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void await() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// bad: one wait is left out, or comes too late.
__global__ void kernel(int way, bool bad, const float* in, float* out, int tiles) {
    __shared__ alignas(16) float stage[4][B];
    __shared__ cuda::barrier<cuda::thread_scope_block> emptied[2], filled[2];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    const int t = threadIdx.x, warp = t / 32 * 32;
    auto block = cg::this_thread_block();
    in += blockIdx.x * B * tiles;
    float sum = 0;
    if (way == 0) {                                            // each thread has its own elements: no barrier
        copy(&stage[0][t], &in[t]), commit();
        for (int i = 0; i < tiles; ++i) {
            if (i + 1 < tiles) copy(&stage[(i + 1) % 2][t], &in[(i + 1) * B + t]);
            commit();
            if (!bad) await<1>();
            sum += stage[i % 2][t];
        }
        await<0>();
    } else if (way == 1) {                                     // each warp its own
        copy(&stage[0][t], &in[t]), commit();
        for (int i = 0; i < tiles; ++i) {
            if (i + 1 < tiles) copy(&stage[(i + 1) % 2][t], &in[(i + 1) * B + t]);
            commit(), await<1>();
            __syncwarp();
            sum += stage[i % 2][warp + 31 - t % 32];
            if (!bad) __syncwarp();
        }
    } else if (way == 2) {                                     // four buffers, one barrier a step
        for (int i = 0; i < 3; ++i) copy(&stage[i][t], &in[i * B + t]), commit();
        for (int i = 0; i < tiles; ++i) {
            if (bad) await<3>(); else await<2>();
            __syncthreads();
            sum += stage[i % 4][B - 1 - t];
            if (i + 3 < tiles) copy(&stage[(i + 3) % 4][t], &in[(i + 3) * B + t]);
            commit();
        }
    } else if (way == 3) {                                     // what was copied is changed in place afterwards
        copy(&stage[0][t], &in[t]), commit();
        if (!bad) await<0>();
        __syncthreads();
        stage[0][t] *= 2;
        __syncthreads();
        sum = stage[0][B - 1 - t];
        copy(&stage[1][t], &in[t]), commit();                  // nobody waits for it, and nobody uses it
    } else if (way == 4) {                                     // copies by the whole block
        for (int i = 0; i < tiles; ++i) {
            cg::memcpy_async(block, stage[0], in + i * B, sizeof(float) * B);
            cg::memcpy_async(block, stage[1], in + i * B, sizeof(float) * B);
            cg::wait_prior<1>(block);
            sum += stage[bad][B - 1 - t];
            cg::wait(block);
            sum += stage[1][B - 1 - t];
            block.sync();
        }
    } else if (way == 5) {                                     """
    r"""// a warp copies and the other reads, by barriers of two kinds
        if (t < 2) init(&emptied[t], B), init(&filled[t], B);
        __syncthreads();
        for (int i = 0; i < tiles; ++i) {
            if (t < 32) {
                if (i >= 2) emptied[i % 2].arrive_and_wait();
                for (int j = t; j < B; j += 32) cuda::memcpy_async(&stage[i % 2][j], &in[i * B + j], sizeof(float), """
    r"""filled[i % 2]);
                auto token = filled[i % 2].arrive();
            } else {
                filled[i % 2].arrive_and_wait();
                if (!bad) sum += stage[i % 2][t - 32] + stage[i % 2][t];
                if (i + 2 < tiles) auto token = emptied[i % 2].arrive();
                if (bad) sum += stage[i % 2][t - 32] + stage[i % 2][t];
            }
        }
    } else if (way == 6) {                                     // the same by a pipeline with roles
        auto pipe = cuda::make_pipeline(block, &state, """
    r"""t < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
        for (int i = 0; i < tiles; ++i) {
            if (t < 32) {
                pipe.producer_acquire();
                for (int j = t; j < B; j += 32) cuda::memcpy_async(&stage[i % 2][j], &in[i * B + j], """
    r"""sizeof(float), pipe);
                pipe.producer_commit();
            } else {
                pipe.consumer_wait();
                if (!bad) sum += stage[i % 2][t - 32] + stage[i % 2][t];
                pipe.consumer_release();
                if (bad) sum += stage[i % 2][t - 32] + stage[i % 2][t];
            }
        }
    } else if (way == 7) {                                     // the end of what is copied is zeros; """
    r"""dynamic shared memory
        extern __shared__ float4 room[];
        __pipeline_memcpy_async(&room[t], (const float4*)in + t, 16, t % 3 == 0 ? 8 : 0);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum = room[B - 1 - t].x;
        if (!bad) __syncthreads();
        __pipeline_memcpy_async(&room[t], (const float4*)in + t, 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        sum += room[t].x;
    } else if (way == 8) {                                     """
    r"""// over a barrier of the whole grid, where blocks make room for each other
        copy(&stage[0][t], &in[t]), commit();
        cg::this_grid().sync();
        if (!bad) await<0>();
        __syncthreads();
        sum = stage[0][B - 1 - t];
        cg::this_grid().sync();
        copy(&stage[0][t], &in[B + t]), commit(), await<0>();
        __syncthreads();
        sum += stage[0][B - 1 - t];
    } else if (way == 9) {                                     """
    r"""// stores instead of copies: writers take turns, and know of each other by readers alone
        if (t < 2) init(&emptied[t], B), init(&filled[t], B);
        __syncthreads();
        for (int i = 0; i < tiles; ++i) {
            if (t < 32) {
                if (i >= 2) emptied[i % 2].arrive_and_wait();
                for (int j = t; j < B; j += 32) stage[i % 2][(j + i) % B] = in[i * B + j];
                auto token = filled[i % 2].arrive();
            } else {
                filled[i % 2].arrive_and_wait();
                if (!bad) sum += stage[i % 2][t - 32] + stage[i % 2][t];
                if (i + 2 < tiles) auto token = emptied[i % 2].arrive();
                if (bad) sum += stage[i % 2][t - 32] + stage[i % 2][t];
            }
        }
    } else if (way == 10) {                                    // halos: two threads copy to one place
        copy(&stage[0][t], &in[t]);
        if (t + 2 < B) copy(&stage[0][t + 2], &in[t + 2 + bad]);
        commit(), await<0>();
        __syncthreads();
        sum = stage[0][B - 1 - t];
    } else if (way == 11) {                                    // a thread copies twice to one place
        copy(&stage[0][t], &in[t]), copy(&stage[0][t], &in[t + bad]), commit(), await<0>();
        sum = stage[0][t];
    }
    out[blockIdx.x * B + t] = sum;
}

void run(int way, bool bad, torch::Tensor in, torch::Tensor out, int tiles, int blocks) {
    const float* x = in.data_ptr<float>();
    float* y = out.data_ptr<float>();
    void* arguments[] = {&way, &bad, &x, &y, &tiles};
    if (way == 8) cudaLaunchCooperativeKernel((void*)kernel, blocks, B, arguments, 0, 0);
    else kernel<<<blocks, B, B * 16>>>(way, bad, x, y, tiles);
}
"""
)
WAYS = range(10)


@pytest.fixture(scope="module")
def kernels():
    declared = "void run(int way, bool bad, torch::Tensor in, torch::Tensor out, int tiles, int blocks);"
    return simt.load_inline("async_order", cpp_sources=declared, cuda_sources=DEVICE, functions=["run"])


def findings(kernels, way, bad, tiles, blocks):
    with simt.check() as report:
        kernels.run(way, bad, torch.randn(blocks * 64 * tiles + 256), torch.zeros(blocks * 64), tiles, blocks)
    return report.findings


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("tiles", "blocks"), [(5, 1), (6, 9)])
def test_sound(kernels, way, tiles, blocks):
    """Is nothing told where whoever reads has waited, and whoever copies again has been waited for?"""
    assert not findings(kernels, way, False, tiles, blocks)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("tiles", "blocks"), [(5, 1), (6, 9)])
def test_a_wait_left_out(kernels, way, tiles, blocks):
    """Is it told as a race of the buffer, soon where there are many blocks, too, and as nothing else?"""
    found = findings(kernels, way, True, tiles, blocks)
    assert found and {f.check for f in found} == {"race"}
    assert {f.array for f in found} == {"room" if way == 7 else "stage"}


@pytest.mark.parametrize("way", [10, 11])
def test_two_copies_to_one_place(kernels, way):
    """Are they no error where both bring the same, and one where it hangs on their order what stays?"""
    assert {f.severity for f in findings(kernels, way, False, 4, 1)} <= {"warning"}
    assert "error" in {f.severity for f in findings(kernels, way, True, 4, 1)}
