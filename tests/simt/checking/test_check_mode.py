"""simt.check() on extensions: what a finding holds, tensors of every origin, both modes of one module, races between
blocks.
"""

import pytest
import torch

import simt

SOURCE = (
    r"""
#include <cooperative_groups.h>
#include <cuda_fp16.h>
__device__ int device_counter;

__global__ void shift(const float* x, float* y, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i + by];  // SHIFT
}
__global__ void into_one(int* out) {
  out[0] = blockIdx.x;  // INTO_ONE
}
__global__ void flag(int* out, const int* x) {
  if (x[blockIdx.x * blockDim.x + threadIdx.x] > 0) out[0] = 1;  // FLAG
}
__global__ void from_neighbour(float* x) {
  int i = blockIdx.x;
  float v = x[(i + 1) % gridDim.x];  // READ
  x[i] = v + 1;  // WRITE
}
__global__ void sum_halves(const __half* x, float* out) {
  out[threadIdx.x] = __half2float(x[threadIdx.x]);  // HALF
}
__global__ void count_all(int* seen) {
  device_counter += 1;  // COUNTER
  seen[threadIdx.x] = 1;
}
__global__ void partly(float* out, int k) {
  float v;
  if (threadIdx.x < k) v = 2.0f;
  out[threadIdx.x] = v;  // PARTLY
}
__global__ void across(float* out, int silent) {
  __shared__ float s[32];
  if (blockIdx.x != silent) s[threadIdx.x] = threadIdx.x + 1;
  cooperative_groups::this_grid().sync();
  out[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];  // ACROSS
}
__global__ void clean(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = tile[63 - threadIdx.x];
}

torch::Tensor run_shift(torch::Tensor x, int n, int by) {
  auto y = torch::empty({n}, x.options());
  shift<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, by);
  return y;
}
void run_into_one(torch::Tensor out, int blocks) { into_one<<<blocks, 1>>>(out.data_ptr<int>()); }
void run_flag(torch::Tensor out, torch::Tensor x) { """
    r"""flag<<<x.numel() / 32, 32>>>(out.data_ptr<int>(), x.data_ptr<int>()); }
void run_from_neighbour(torch::Tensor x) { from_neighbour<<<x.numel(), 1>>>(x.data_ptr<float>()); }
torch::Tensor run_sum_halves(torch::Tensor x) {
  auto out = torch::empty({x.numel()}, x.options().dtype(torch::kFloat32));
  sum_halves<<<1, x.numel()>>>((const __half*)x.data_ptr(), out.data_ptr<float>());
  return out;
}
torch::Tensor run_unwritten_halves(int n) {
  auto x = torch::empty({n}, torch::dtype(torch::kFloat16).device(torch::kCUDA));
  return run_sum_halves(x);
}
void run_count_all(torch::Tensor seen) { count_all<<<1, seen.numel()>>>(seen.data_ptr<int>()); }
void run_partly(torch::Tensor out, int k) { partly<<<1, out.numel()>>>(out.data_ptr<float>(), k); }
void run_across(torch::Tensor out, int silent) {
  float* p = out.data_ptr<float>();
  void* arguments[] = {&p, &silent};
  cudaLaunchCooperativeKernel((const void*)across, dim3(out.numel() / 32), dim3(32), arguments, 0, nullptr);
}
void run_clean(torch::Tensor x, torch::Tensor y) {
  int n = x.numel();
  clean<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""
)
HOSTS = [
    "torch::Tensor run_shift(torch::Tensor x, int n, int by)", "void run_into_one(torch::Tensor out, int blocks)",
    "void run_flag(torch::Tensor out, torch::Tensor x)", "void run_from_neighbour(torch::Tensor x)",
    "torch::Tensor run_sum_halves(torch::Tensor x)", "torch::Tensor run_unwritten_halves(int n)",
    "void run_count_all(torch::Tensor seen)", "void run_partly(torch::Tensor out, int k)",
    "void run_clean(torch::Tensor x, torch::Tensor y)", "void run_across(torch::Tensor out, int silent)",
]  # fmt: skip


@pytest.fixture(scope="module")
def kernels():
    return simt.load_inline(
        "test_check_mode",
        "\n".join(h + ";" for h in HOSTS),
        SOURCE,
        functions=[h.split("(")[0].split()[-1] for h in HOSTS],
    )


def line_of(mark: str) -> int:
    return next(n for n, line in enumerate(SOURCE.split("\n"), 1) if line.endswith(f"// {mark}"))


def only(report: simt.Report) -> simt.Finding:
    assert len(report.findings) == 1, report.text()
    return report.findings[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 63, 64, 200])
@pytest.mark.parametrize("made_before", [True, False])
def test_is_every_access_past_a_tensors_end_seen(kernels, n, made_before):
    x = torch.rand(n)  # by torch's own allocator
    with simt.check() as report:
        if not made_before:
            x = x.clone()
        kernels.run_shift(x, n, 3)
    finding = only(report)
    assert (finding.check, finding.line, finding.array, finding.kernel) == (
        "out_of_bounds",
        line_of("SHIFT"),
        "x",
        "shift",
    )
    assert finding.count == min(n, 3)
    first = max(n - 3, 0)
    assert finding.block == (first // 64, 0, 0) and finding.thread == (first % 64, 0, 0) and finding.index == first + 3


def test_is_the_front_of_a_tensor_guarded(kernels):
    with simt.check() as report:
        kernels.run_shift(torch.rand(40), 40, -1)
    finding = only(report)
    assert finding.check == "out_of_bounds" and finding.index == -1 and "before its start" in finding.message


def test_does_an_overflow_into_another_tensor_count(kernels):
    both = [torch.rand(16), torch.rand(16)]
    for distance in (4, 64, 4096, 1 << 20):
        with simt.check() as report:
            x, _y = (t.clone() for t in both)
            kernels.run_shift(x, 16, distance)
        finding = report.findings[0]
        assert (finding.check, finding.array, finding.index) == ("out_of_bounds", "x", max(distance, 16)), report.text()


def test_do_views_count_as_their_whole_storage(kernels):
    whole = torch.rand(100)
    with simt.check() as report:
        kernels.run_shift(whole[10:50], 40, 50)
    assert not report.findings, report.text()


@pytest.mark.parametrize("blocks", [2, 3, 64])
def test_do_blocks_that_write_one_element_race(kernels, blocks):
    with simt.check() as report:
        kernels.run_into_one(torch.zeros(1, dtype=torch.int32), blocks)
    finding = only(report)
    assert (finding.check, finding.severity, finding.line, finding.other_line) == (
        "race",
        "error",
        *[line_of("INTO_ONE")] * 2,
    )
    assert finding.block != finding.other_block


@pytest.mark.parametrize("schedule", ["forward", "reverse", 5])
@pytest.mark.parametrize("blocks", [2, 9, 100])
def test_is_a_race_found_in_every_order(kernels, schedule, blocks):
    with simt.check(schedule=schedule) as report:
        kernels.run_from_neighbour(torch.zeros(blocks))
    finding = only(report)
    assert (finding.check, finding.line, finding.other_line) == ("race", line_of("READ"), line_of("WRITE"))
    assert (finding.block[0] + 1) % blocks == finding.other_block[0]


def test_is_one_value_by_many_writers_a_mere_warning(kernels):
    with simt.check() as report:
        kernels.run_flag(torch.zeros(1, dtype=torch.int32), torch.ones(256, dtype=torch.int32))
    assert only(report).severity == "warning" and not report.errors


def test_are_unwritten_halves_seen(kernels):
    with simt.check() as report:
        kernels.run_unwritten_halves(32)
    finding = only(report)
    assert (finding.check, finding.line, finding.count) == ("uninitialized", line_of("HALF"), 32)
    with simt.check() as report:
        out = kernels.run_sum_halves(torch.arange(32).half())
    assert not report.findings and out.tolist() == list(range(32))


@pytest.mark.parametrize("silent", [-1, 0, 2, 3])
def test_does_a_block_keep_what_it_wrote_across_a_grid_barrier(kernels, silent):
    """Is shared memory known as written by the blocks that wrote it, though others began later, and as unwritten in the
    one that did not?
    """
    out = torch.empty(4 * 32)
    with simt.check() as report:
        kernels.run_across(out, silent)
    if silent < 0:
        assert not report.findings and out.tolist() == [32.0 - i for i in range(32)] * 4
    else:
        finding = only(report)
        assert (finding.check, finding.line, finding.count) == ("uninitialized", line_of("ACROSS"), 32)


def test_are_device_variables_named(kernels):
    with simt.check() as report:
        kernels.run_count_all(torch.zeros(4, dtype=torch.int32))
    finding = only(report)
    assert (finding.check, finding.array, finding.line) == ("race", "device_counter", line_of("COUNTER"))


def test_are_unset_local_variables_seen(kernels):
    with simt.check() as report:
        kernels.run_partly(torch.zeros(32), 20)
    finding = only(report)
    assert (finding.check, finding.line, finding.thread, finding.count) == (
        "uninitialized",
        line_of("PARTLY"),
        (20, 0, 0),
        12,
    )
    with simt.check() as report:
        kernels.run_partly(torch.zeros(32), 32)
    assert not report.findings


@pytest.mark.slow
def test_are_volatile_local_variables_marked_as_well():
    source = """
struct pair { int a, b; };
__global__ void slow(int* out, int k) {
  volatile int v; volatile pair p;
  p.a = p.b = threadIdx.x;
  if (threadIdx.x < k) v = 1;
  out[threadIdx.x] = v + p.a + p.b;
}
void run_slow(torch::Tensor out, int k) { slow<<<1, out.numel()>>>(out.data_ptr<int>(), k); }"""
    module = simt.load_inline(
        "test_check_volatile", "void run_slow(torch::Tensor out, int k);", source, functions=["run_slow"]
    )
    out = torch.zeros(32, dtype=torch.int32)
    with simt.check() as report:
        module.run_slow(out, 32)
    assert not report.findings and out.tolist() == [2 * i + 1 for i in range(32)]
    with simt.check() as report:
        module.run_slow(out, 20)
    assert (only(report).check, only(report).line, only(report).count) == ("uninitialized", 7, 12)


def test_do_both_modes_of_one_module_agree(kernels):
    x = torch.rand(150)
    plain, checked = torch.zeros(150), torch.zeros(150)
    kernels.run_clean(x, plain)
    with simt.check() as report:
        kernels.run_clean(x, checked)
    kernels.run_clean(x, plain)
    assert not report.findings and torch.equal(plain, checked) and plain.any()


def test_does_a_report_say_what_it_found(kernels):
    with simt.check() as report:
        kernels.run_shift(torch.rand(10), 10, 1)
    assert report.text().startswith(
        f"out_of_bounds: cuda_sources, line {line_of('SHIFT')}, kernel shift: "
        f"Thread (9, 0, 0) of block (0, 0, 0) reads element 10 of `x`"
    )
    assert report.as_dict()["findings"][0]["thread"] == (9, 0, 0)
    with simt.check() as report:
        pass
    assert report.text() == "No check found anything."


@pytest.mark.slow
def test_are_findings_told_also_when_the_kernel_stops():
    source = (
        "__global__ void half_way() { if (threadIdx.x < 16) __syncthreads(); }\nvoid go() { half_way<<<1, 32>>>(); }"
    )
    module = simt.load_inline("test_check_stops", "void go();", source, functions=["go"])
    with simt.check() as report, pytest.raises(simt.KernelError):
        module.go()
    assert only(report).check == "barrier_divergence" and only(report).line == 1
