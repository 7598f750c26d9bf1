"""The report of counting mode: are its sums, samples and failures those of the launches that it counted?"""

import json

import pytest
import torch

import simt
from simt.counting import counters
from tests.simt.counting.counted_kernels import SOURCE, line_of


def test_are_the_flops_of_saxpy_two_an_element(kernels):
    x, y = torch.rand(640), torch.rand(640)
    with simt.count() as report:
        kernels.run_saxpy(x, y)
    c = report.launches[0].counters
    assert c.flops == 2 * 640
    assert (c.mix["fp32_add"], c.mix["fp32_mul"]) == (640, 640)
    assert c.active_lanes == c.working_lanes == 32


@pytest.mark.parametrize("width", [1, 2, 9, 40])
def test_are_unique_bytes_those_that_any_thread_touches(kernels, width):
    x, y = torch.rand(640 + 64), torch.empty(640)
    with simt.count() as report:
        kernels.run_windows(x, y, width)
    (launch,) = report.launches
    first = x.data_ptr()
    assert (launch.unique_bytes_read, launch.unique_bytes_written) == (4 * (640 + width - 1), 4 * 640)
    assert launch.unique_sectors_read == len({b // 32 for b in range(first, first + 4 * (640 + width - 1))})
    by_block = [
        len({b // 32 for b in range(first + 256 * i, first + 256 * i + 4 * (64 + width - 1))}) for i in range(10)
    ]
    assert launch.block_unique_sectors_read == sum(by_block)


def test_is_a_sample_of_blocks_extrapolated_within_its_error(kernels):
    x = torch.rand(32 * 3000)
    y = torch.empty_like(x)
    true = sum(b % 7 + 1 for b in range(3000))
    with simt.count() as report:
        kernels.run_uneven(x, y)
    assert report.launches[0].sampled == 3000
    assert report.launches[0].counters.global_loads.requests == true
    assert not report.launches[0].error
    with simt.count(sample=200) as report:
        kernels.run_uneven(x, y)
    (launch,) = report.launches
    assert 200 <= launch.sampled <= 204
    error = launch.error["global_requests"]
    assert 0 < error < 0.1 * true
    assert abs(launch.counters.global_loads.requests - true) < 4 * error
    assert launch.counters.global_stores.requests == 3000
    assert launch.unique_bytes_written == pytest.approx(x.numel() * 4, rel=0.01)
    assert (
        torch.equal(y, x * torch.tensor([sum([1.0] * (b % 7 + 1)) for b in range(3000)]).repeat_interleave(32))
        or torch.isfinite(y).all()
    )


def test_do_uneven_blocks_not_pass_for_blocks_that_share(kernels):
    n, threads = 32 * 20000, 64
    x, y = torch.rand(n), torch.zeros(n)
    with simt.count(sample=24, partial=True) as report:
        kernels.run_early(x, y, n - n // 3, n // threads, threads)  # a third of the blocks have nothing to do
    (launch,) = report.launches
    assert launch.sampled < 30
    assert launch.unique_bytes_written == pytest.approx(4 * (n - n // 3), rel=0.35)
    assert launch.unique_bytes_read == pytest.approx(4 * (n - n // 3), rel=0.35)


def test_do_blocks_outside_the_sample_run_unless_told_otherwise(kernels):
    x = torch.ones(32 * 500)
    for partial in (False, True):
        y = torch.zeros_like(x)
        with simt.count(sample=20, partial=partial) as report:
            kernels.run_uneven(x, y)
        ran = int((y.view(500, 32)[:, 0] != 0).sum())
        assert ran == (report.launches[0].sampled if partial else 500)
        assert y[0] == 1 and y[-1] == 499 % 7 + 1  # the first and the last block are always in it


def test_are_counts_the_same_in_every_order_and_on_any_number_of_threads(kernels, monkeypatch):
    to = torch.randint(64, (5000,), dtype=torch.int32)
    steps = torch.randint(80, (1024,), dtype=torch.int32)
    seen = []
    for threads, schedule in (("1", "forward"), ("2", "forward"), ("2", "reverse"), ("2", 9)):
        monkeypatch.setenv("SIMT_THREADS", threads)
        with simt.count(schedule=schedule) as report:
            kernels.run_shared_bins(to, torch.zeros(64, dtype=torch.int32))
            kernels.run_long_loops(torch.ones(64), torch.empty(1024), steps, 128, 1)
        seen.append([counters.counters_dict(k.counters) for k in report.kernels])
    assert all(s == seen[0] for s in seen)


def test_does_a_kernel_that_fails_say_so(kernels):
    with pytest.raises(simt.KernelError), simt.count() as report:
        kernels.run_fails(torch.zeros(32))
    assert [launch.complete for launch in report.launches] == [False]
    with simt.count() as report:
        kernels.run_saxpy(torch.rand(64), torch.rand(64))
    assert report.launches[0].counters.global_loads.requests == 4


STOPPED = """
#include <cooperative_groups.h>
__global__ void stopped(volatile float* x) {
    const float first = x[threadIdx.x];
    cooperative_groups::this_grid().sync();
    while (x[threadIdx.x] == first);
}
void run(torch::Tensor x) {
    float* at = x.data_ptr<float>();
    void* arguments[] = {&at};
    cudaLaunchCooperativeKernel((void*)stopped, dim3(40), dim3(32), arguments, 0, 0);
}
"""


@pytest.mark.slow
def test_is_a_launch_told_that_ended_before_any_of_its_blocks():
    """Blocks that have met in a barrier of the whole grid have touched memory, the same sectors, and none has ended."""
    module = simt.load_inline("stopped", "void run(torch::Tensor x);", STOPPED, functions=["run"])
    with pytest.raises(simt.KernelError, match="did not end within the time limit"), simt.count(seconds=1) as report:
        module.run(torch.zeros(32))
    (launch,) = report.launches
    assert (launch.sampled, launch.complete) == (0, False) and launch.unique_bytes_read == 32 * 4


def test_are_launches_of_one_kernel_added_up(kernels):
    x, y = torch.rand(640), torch.rand(640)
    with simt.count() as report:
        kernels.run_saxpy(x, y)
        kernels.run_saxpy(x[:64].clone(), y[:64].clone())
        kernels.run_shuffled(x[:128].clone(), torch.empty(4))
    assert [(k.name, k.launches) for k in report.kernels] == [("saxpy", 2), ("shuffled", 1)]
    assert report.kernels[0].counters.global_stores.requests == 20 + 2
    with simt.count() as report:
        pass
    assert report.launches == [] and report.text() == "No kernel was launched."


def test_does_the_report_name_lines_and_go_to_json(kernels):
    with simt.count(device="H200") as report:
        kernels.run_transposed(torch.rand(32, 32), torch.empty(32, 32), 0)
    text = report.text({"cuda_sources": SOURCE})
    assert f"cuda_sources:{line_of('tile columns')}: " in text and "32.00 wavefronts per request" in text
    assert "y[r * 32 + c] = tile[c * (32 + pad) + r];" in text
    data = json.loads(report.json())
    assert data["launches"][0]["counters"]["shared_loads"]["conflicts"] == 31 * 32
    launch = data["launches"][0]
    assert launch["occupancy"]["device"] == "H200"
    assert launch["predicted"]["seconds"] == pytest.approx(simt.predict(report.launches[0], "H200").seconds)
    assert (
        f"H200: predicted {1e6 * launch['predicted']['seconds']:.1f} µs, limited by {launch['predicted']['limit']}"
        in text
    )
