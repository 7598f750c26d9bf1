"""Does the runtime obey a monitor whatever Python says, and report what launches did and who wrote which bytes?

A process obeys one monitor for good, so that a child runs the kernels; here it is the monitor's own process as well.
"""

import json
import mmap
import os
import subprocess
import sys

import pytest

from simt.runtime.monitor import HEAD, MAGIC, ORDERS, TEXT_AT, Monitor, Orders, ReportError

CODE = r"""
import json, os, sys
import numpy as np
import torch
import simt
from grader.worker.failures import NAME, shorten
from simt.runtime import extension, library
from simt.runtime.monitor import Monitor, Orders

simt.warm_up()
monitor = Monitor()
assert library.obey_monitor(*map(os.dup, monitor.descriptors)) and monitor.is_obeyed()
assert not library.obey_monitor(*map(os.dup, monitor.descriptors))
extension.load_binder().report_torch()
kernels = simt.load_inline(
    "monitored",
    "void add(torch::Tensor x, torch::Tensor y); void race(torch::Tensor x); void store(torch::Tensor x, int64_t i);"
    "void call(torch::Tensor x); void fill(float* x) { for (int i = 0; i < 40; ++i) x[i] = 100 + i; }",
    '''
#include <cooperative_groups.h>
__global__ void add_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i % 2) y[i] = x[i] + 1;
}
__global__ void race_kernel(float* x) { x[0] = x[0] + threadIdx.x; }
__global__ void store_kernel(float* x, int i) { if (threadIdx.x == 3) x[i] = 5; }
void fill(float* x);
__global__ void calling_kernel(void (*fill)(float*), float* x) {
  if (threadIdx.x == 0) fill(x);
  x[50 + threadIdx.x] = 200 + threadIdx.x;
}
__global__ void meeting_kernel(float* x) {
  x[threadIdx.x] = 300 + threadIdx.x;
  cooperative_groups::this_grid().sync();
  x[50 + threadIdx.x] = 400 + threadIdx.x;
}
void call(torch::Tensor x) {
  calling_kernel<<<1, 32>>>(fill, x.data_ptr<float>());
  float* at = x.data_ptr<float>();
  void* arguments[] = {&at};
  cudaLaunchCooperativeKernel((void*)meeting_kernel, 1, 32, arguments, 0, 0);
}
void add(torch::Tensor x, torch::Tensor y) {
  add_kernel<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
}
void race(torch::Tensor x) { race_kernel<<<1, 32>>>(x.data_ptr<float>()); }
void store(torch::Tensor x, int64_t i) { store_kernel<<<1, 32>>>(x.data_ptr<float>(), i); }
''',
    functions=["add", "race", "store", "call"],
)

name = "k" + "a" * 8000 + "z"
races = "\n".join(f"x[{i}] = threadIdx.x;" for i in range(90))
long_name = simt.load_inline(
    "long_name",
    "void many(torch::Tensor x);",
    f"__global__ void {name}(float* x) {{ {races} }}\n"
    f"void many(torch::Tensor x) {{ {name}<<<1, 32>>>(x.data_ptr<float>()); }}",
    functions=["many"],
)


def order(**orders):
    monitor.order(Orders(**orders))


def lend(tensor, guard="end"):
    offset = monitor.lend(tensor.numpy().tobytes(), guard)
    return offset, extension.load_binder().map_input(offset, tensor.dtype, tuple(tensor.shape))


found = {}


class Memory:
    def __init__(self, address, words):
        self.__array_interface__ = {"data": (address, True), "shape": (words,), "typestr": "<u8", "version": 3}


def find_writable(value):
    maps = [line.split(None, 5) for line in open("/proc/self/maps")]
    ranges = [(*(int(end, 16) for end in m[0].split("-")), m) for m in maps]
    library_ends = [high for _, high, m in ranges if m[-1].strip().endswith("libsimt_runtime.so")]
    mine = [(low, high) for low, high, m in ranges if m[1].startswith("rw")
            and (m[-1].strip().endswith("libsimt_runtime.so") or low in library_ends)]
    assert mine
    return sum(int((np.asarray(Memory(low, (high - low) // 8)) == value).sum()) for low, high in mine)


def find_mapping(name, protection):
    return [int(line.split("-")[0], 16) for line in open("/proc/self/maps") if name in line and protection in line]


x, y = torch.arange(100.0), torch.zeros(100)

order(guard="end")
kernels.add(x, y)
kernels.add(x, y)
library.take_launches()  # takes nothing from the report
report = monitor.read()
found["launches"] = report.launches, report.idle, report.checked, [(*key, n) for key, n in report.kinds.items()]

order(idle=True)
y = torch.zeros(100)
with simt.run(idle=False):
    kernels.add(x, y)
report = monitor.read()
found["idle"] = report.launches, report.idle, float(y.sum())

order(check=True, guard="end")
with simt.run(mode="plain"):
    kernels.race(torch.zeros(1))
library.take_findings()
report = monitor.read()
found["checks"] = report.checked, report.unprobed, [(f.check, f.kernel, f.warning) for f in report.findings]

order(check=True, guard="end")
long_name.many(torch.zeros(100))
report = monitor.read()
(kernel, _, _), = report.kinds
found["many"] = report.errors, len(report.findings), {f.check for f in report.findings} == {"race"}, kernel
found["claimed name"] = shorten(library.take_launches()[-1][0], NAME)

order(check=True)
plain = extension.load_binder().load(kernels.__file__, 0, None)
plain["race"](torch.zeros(1))
found["unprobed"] = monitor.read().unprobed, len(monitor.read().findings)

order(guard="end")
offset, lent = lend(torch.arange(100.0))
values = float(lent.sum())
kernels.store(lent, 7)
report = monitor.read()
found["kernel's write"] = [
    [(w.offset == offset, w.kernel, w.block, w.thread) for w in report.writes], values, float(lent[7])
]
found["place"] = library.input_writes()[0][4] is not None
offset, lent = lend(torch.arange(100.0), "front")
again = extension.load_binder().map_input(offset, torch.float32, (100,))
order()
lent.mul_(2)
lent.mul_(2)
found["host's write"] = [(w.offset == offset, w.kernel, w.block) for w in monitor.read().writes]
found["untouched"] = float(again.sum())
order(guard="end")
offset, lent = lend(torch.arange(3.0))
try:
    kernels.store(lent, 3)
except simt.KernelError as error:
    found["next to it"] = error.reason, len(monitor.read().writes)

order(guard="end", record=4, least=400)
y = torch.zeros(100)
kernels.add(x, y)
y[0] = 3
kernels.add(x, y)
values = lambda r: torch.frombuffer(bytearray(r.data), dtype=torch.float32).tolist()
found["recorded"] = [
    (r.by_kernel, r.launch, sorted({v for v in values(r) if v == v} - {0})[:3])  # poison, what is unchanged, is NaN
    for r in monitor.read().recorded
    if len(r.data) in (200, 400)
]

order(check=True, record=4, least=4)
kernels.call(torch.zeros(100))
found["meanwhile"] = [
    (r.meanwhile, r.launch, sorted(values(r))[:: len(r.data) // 4 - 1])
    for r in monitor.read().recorded
    if (r.meanwhile or r.by_kernel) and max(values(r)) >= 100
]

order(watch=100)
torch.sigmoid(x)
torch.exp(x[:50])
found["operators"] = [name for name in monitor.read().operators if name in ("aten::sigmoid", "aten::exp")]
order()
kernels.add(x, y)
known = find_mapping("memfd:simt-orders", "r--") + find_mapping("memfd:simt-report", "r--")
found["sealed"] = len(known), [find_writable(address) for address in known]
print("RESULT", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """What a monitored process reported, by what it did."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=600, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr[-2000:]
    return json.loads(lines[0].removeprefix("RESULT "))


def test_launches_are_reported_once_each(found):
    """Are launches counted by kernel, grid and block, although Python has taken its own list?"""
    assert found["launches"] == [2, 0, 0, [["add_kernel", [4, 1, 1], [32, 1, 1], 2]]]


def test_idle_launches_run_no_thread_whatever_the_options_say(found):
    """Do the monitor's orders come before simt.run's options?"""
    assert found["idle"] == [1, 1, 0.0]


def test_checks_are_on_whatever_the_options_say(found):
    """Are findings reported, and kept where Python takes its own?"""
    checked, unprobed, findings = found["checks"]
    assert (checked, unprobed) == (1, 0) and ["race", "race_kernel", False] in findings


def test_python_cannot_write_where_the_pages_lie(found):
    """Does no writable memory of the runtime hold the address of its orders, or of its report?"""
    count, writable = found["sealed"]
    assert count >= 2 and not any(writable)


def test_many_findings_of_a_long_name(found):
    """Are errors counted that the report has no room for, and names cut as a worker's messages cut them?"""
    errors, listed, alike, kernel = found["many"]
    assert errors == 90 and listed == 64 and alike
    assert kernel == found["claimed name"] and len(kernel) < 210


def test_a_build_without_probes_is_noticed(found):
    """Is it reported that a function ran without the checks?"""
    assert found["unprobed"] == [1, 0]


def test_writes_to_inputs_are_reported(found):
    """Is the first write to each input reported with its thread, and does the monitor's memory stay as it was?"""
    assert found["kernel's write"] == [[[True, "store_kernel", [0, 0, 0], [3, 0, 0]]], 4950.0, 5.0] and found["place"]
    assert found["host's write"] == [[True, "", None]]
    assert found["untouched"] == 4950.0


def test_a_write_next_to_an_input_is_out_of_bounds(found):
    """Is a write behind an input an error of its own, and no change of the input?"""
    assert found["next to it"] == ["out_of_bounds", 0]


def test_who_wrote_which_bytes(found):
    """Are the host's blocks reported before a launch, and the elements that it changes after it?"""
    host = [values for by_kernel, launch, values in found["recorded"] if not by_kernel and launch == 1]
    assert [1.0, 2.0, 3.0] in host  # x, which torch.arange wrote
    assert [True, 1, [2.0, 4.0, 6.0]] in found["recorded"]  # x[i] + 1 for odd i
    later = [values for by_kernel, launch, values in found["recorded"] if not by_kernel and launch == 2]
    assert len(later) == 1 and later[0][0] == 3.0  # what the first launch wrote is not the host's
    assert not [1 for by_kernel, launch, _ in found["recorded"] if by_kernel and launch == 2]  # it changed nothing


def test_what_changes_while_a_kernel_runs(found):
    """Is what a function of the host writes during a launch told from what the kernel's threads write, also before a
    barrier of the grid?
    """
    calling = [[True, 1, [100.0, 139.0]], [False, 1, [200.0, 231.0]]]
    assert found["meanwhile"] == [*calling, [False, 2, [300.0, 431.0]]]


def test_operators_are_reported_by_size(found):
    """Are PyTorch's operators on large tensors reported, and no others?"""
    assert found["operators"] == ["aten::sigmoid"]


# --- the pages ---


@pytest.fixture
def monitor():
    made = Monitor()
    yield made
    made.close()


def test_the_other_process_can_write_to_the_report_alone(monitor):
    """Are orders and inputs sealed against writing, also where a descriptor is opened anew?"""
    orders, report, inputs = monitor.descriptors
    for descriptor in (orders, inputs):
        with pytest.raises(OSError):
            os.pwrite(descriptor, b"x", 0)
        for flags in (os.O_RDWR, os.O_WRONLY):
            with pytest.raises(OSError):
                again = os.open(f"/proc/self/fd/{descriptor}", flags)
                mmap.mmap(again, 4096)
                os.pwrite(again, b"x", 0)
    os.pwrite(report, b"x", TEXT_AT)
    monitor.lock()
    with pytest.raises(OSError):
        os.pwrite(report, b"x", TEXT_AT)
    with pytest.raises(OSError):
        mmap.mmap(report, 4096)


def test_no_page_can_be_cut_short(monitor):
    """Can the other process not make reading the report a fault?"""
    for descriptor in monitor.descriptors:
        with pytest.raises(OSError):
            os.ftruncate(descriptor, 0)


def test_orders_are_written_as_the_runtime_reads_them(monitor):
    """Do all fields arrive, and does each order have a number of its own?"""
    before = monitor.number
    monitor.order(Orders(check=True, schedule=7, guard="front", seconds=2.5, idle=True, record=8, least=9, watch=10))
    with mmap.mmap(monitor.descriptors[0], 4096, prot=mmap.PROT_READ) as page:
        fields = ORDERS.unpack_from(page)
    assert fields == (MAGIC, before + 1, 1, 2, 7, 2.5, 1, 1, 8, 9, 10)


FORGED = {
    "a size that is impossible": ((0, 0, 0, 0, 1 << 40), b""),
    "a text that is no JSON": ((1, 0, 0, 0, 0), b"{"),
    "JSON of another kind": ((1, 0, 0, 0, 0), b'{"launches": 3, "more": false, "operators": [], "findings": []}'),
    "too many launches": (
        (1, 0, 0, 0, 0),
        json.dumps({
            "launches": [["k", [1, 1, 1], [1, 1, 1], 1]] * 257, "more": False, "operators": [], "findings": [],
        }).encode(),
    ),
    "a number that is too large": (
        (1, 0, 0, 0, 0),
        json.dumps({
            "launches": [["k", [1, 1, 1], [1, 1, 1], 2**80]], "more": False, "operators": [], "findings": [],
        }).encode(),
    ),
    "findings that are none": (
        (1, 0, 0, 0, 0),
        b'{"launches": [], "more": false, "operators": [], "findings": null}',
    ),
    "nesting": ((1, 0, 0, 0, 0), b"[" * 100_000),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_report_is_an_error_of_one_kind(monitor, what):
    """Does nothing that stands in the report raise anything else?"""
    counts, text = FORGED[what]
    os.pwrite(monitor.descriptors[1], HEAD.pack(monitor.number, *counts, 0, 0, len(text), 0, 0, 0), 0)
    os.pwrite(monitor.descriptors[1], text, TEXT_AT)
    with pytest.raises(ReportError):
        monitor.read()


def test_lent_bytes_lie_at_the_page_that_was_asked_for(monitor):
    """Does an input end, or begin, at a page's edge, and is the rest of its pages poison?"""
    end, front = monitor.lend(b"x" * 100, "end"), monitor.lend(b"y" * 100, "front")
    assert end is not None and front is not None
    assert (end + 112) % mmap.PAGESIZE == 0 and front % mmap.PAGESIZE == 0
    data = os.pread(monitor.descriptors[2], 2 * mmap.PAGESIZE, 0)
    assert data[end : end + 100] == b"x" * 100 and data[front : front + 100] == b"y" * 100
    assert data[end - 4 : end] == data[front + 100 : front + 104] == bytes.fromhex("c67fc67f")
    assert monitor.lend(b"", "end") is None
    monitor.take_back()
    assert monitor.lend(b"z" * 100, "front") == 0
