"""Does torch's device "cuda" mean this CPU where simt says so, and only there?"""

import subprocess
import sys
import threading

import pytest
import torch

import simt
from simt.devices import DEVICES
from simt.runtime import torch_device, torch_replaced

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="torch is left as it is on a machine with a GPU")

X = torch.arange(6.0).reshape(2, 3)
LINEAR = torch.nn.Linear(3, 2)


@pytest.fixture
def on():
    """Let "cuda" mean the CPU in the test."""
    with torch_device.cuda_on_cpu():
        yield


class Linear3(torch.nn.Module):
    """A module for torch.jit.script, which must find torch's functions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ones_like(x) + torch.zeros([3])


FORMS = {
    'torch.zeros(3, device="cuda")': torch.zeros(3),
    'torch.full((2,), 3.0, device="cuda:0")': torch.full((2,), 3.0),
    'torch.arange(4, device=torch.device("cuda"))': torch.arange(4),
    "torch.tensor([1, 2], device=0)": torch.tensor([1, 2]),
    'torch.zeros_like(X, device="cuda", dtype=torch.half)': torch.zeros(2, 3, dtype=torch.half),
    "torch.ones(2, device=X.device, pin_memory=True)": torch.ones(2),
    "X.new_ones(2, device=X.device)": torch.ones(2),
    "X.cuda()": X,
    "X.cuda(0, non_blocking=True)": X,
    'X.to("cuda")': X,
    'X.to("cuda:0", torch.float64)': X.double(),
    "X.to(0)": X,
    "X.to(device=X.device, dtype=torch.int32)": X.int(),
    "X.pin_memory().cuda()": X,
    "torch.cuda.FloatTensor([1, 2])": torch.tensor([1.0, 2.0]),
    'torch.jit.script(Linear3())(X.to("cuda"))': torch.ones(2, 3),
    "LINEAR.cuda()(X.cuda())": LINEAR(X),
    'LINEAR.to("cuda")(X)': LINEAR(X),
    'torch.nn.Linear(3, 2, device="cuda").weight * 0': torch.zeros(2, 3),
    'torch.randn(2, device="cuda", generator=torch.Generator("cuda").manual_seed(3))': torch.randn(
        2, generator=torch.Generator().manual_seed(3)
    ),
}

FACTS = """X.is_cuda
not X.is_cpu
X.device == torch.device("cuda:0")
X.device.type == "cuda" and X.device.index == 0
X.get_device() == torch.cuda.current_device() == 0
LINEAR.weight.is_cuda
X.cuda() is X and X.to("cuda") is X
X.cpu() is not X and X.to("cpu").data_ptr() != X.data_ptr()
X.type() == "torch.cuda.FloatTensor"
torch.cuda.is_available() and torch.cuda.device_count() == 1
torch.cuda.synchronize() is None and torch.cuda.empty_cache() is None
torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0
torch.cuda.current_stream() == torch.cuda.default_stream() and torch.cuda.current_stream().cuda_stream == 0
torch.cuda.Stream() != torch.cuda.Stream() and torch.cuda.Stream(priority=-1).cuda_stream > 2
torch.cuda.ExternalStream(4711).cuda_stream == 4711
torch.cuda.Stream().query() and torch.cuda.Stream().record_event().query()
torch.cuda.get_device_name() == "T4" and torch.cuda.get_device_capability() == (7, 5)
torch.cuda.get_device_properties(0).warp_size == 32
isinstance(torch.default_generator, torch.Generator)
torch.cuda.get_rng_state().equal(torch.get_rng_state())
not torch.amp.GradScaler("cuda", enabled=False).is_enabled()
not torch.cuda.is_current_stream_capturing()
repr(X) == REPR""".splitlines()
REPR = repr(X)


@pytest.mark.parametrize("form", FORMS)
def test_forms_give_what_they_give_on_the_cpu(form, on):
    """Is the result that of the same call without a GPU's name, and does it report to be on one?"""
    found = eval(form)
    assert torch.equal(found, FORMS[form]) and found.dtype == FORMS[form].dtype and found.is_cuda


@pytest.mark.parametrize("fact", FACTS)
def test_facts_hold_as_on_a_gpu(fact, on):
    assert eval(fact)


def test_off_again_torch_is_as_it_was():
    """Do torch's functions find no GPU outside, also between two uses and in suspended()?"""
    with torch_device.cuda_on_cpu():
        with torch_replaced.suspended():
            assert not torch.cuda.is_available() and not X.is_cuda and X.device.type == "cpu"
        assert X.is_cuda
    assert not torch.cuda.is_available() and not X.is_cuda and X.cpu() is X
    with pytest.raises((AssertionError, RuntimeError)):
        torch.zeros(3, device="cuda")


def test_torchs_own_modules_find_no_gpu(on):
    """Is is_available() false in torch's modules, which would load the driver or generate code for a GPU?"""
    there: dict = {"torch": torch, "__name__": "torch.some_module"}
    exec("found = torch.cuda.is_available()", there)
    assert torch.cuda.is_available() and not there["found"]


def test_default_device(on):
    """Do set_default_device("cuda") and `with torch.device("cuda")` place tensors on the CPU?"""
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(2).is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.empty(2).is_cuda


def test_threads_begin_like_their_starter():
    seen = []
    with torch_device.cuda_on_cpu():
        thread = threading.Thread(target=lambda: seen.append(torch.zeros(1, device="cuda").is_cuda))
        thread.start()
        thread.join()
    other = threading.Thread(target=lambda: seen.append(X.is_cuda))
    other.start()
    other.join()
    assert seen == [True, False]


class Double(torch.autograd.Function):
    """Twice its input, with a backward that uses the device."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, *gradients):
        (gradient,) = gradients
        assert gradient.is_cuda
        return gradient * torch.full((1,), 2.0, device=gradient.device)


def test_backward_runs_with_the_device(on):
    x = torch.ones(3, requires_grad=True)
    assert torch.equal(torch.autograd.grad(Double.apply(x).sum(), x)[0], torch.full((3,), 2.0))


def test_properties_are_those_of_the_device_whose_limits_apply(on):
    from simt.runtime import library

    library.options.device, before = "H100", library.options.device
    try:
        found, gpu = torch.cuda.get_device_properties(), DEVICES["H100"]
    finally:
        library.options.device = before
    assert (found.name, found.major, found.multi_processor_count) == (gpu.name, gpu.major, gpu.multiprocessors)
    assert (found.total_memory, found.L2_cache_size) == (gpu.global_bytes, gpu.l2_bytes)


def test_streams_nest(on):
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        with torch.cuda.stream(second):
            assert torch.cuda.current_stream() == second
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == first
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_events_measure_time(on):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record(torch.cuda.current_stream())
    end.synchronize()
    assert 0 <= start.elapsed_time(end) < 1000
    with pytest.raises(ValueError, match="enable_timing"):
        torch.cuda.Event().elapsed_time(end)


def test_a_graph_runs_on_replay_and_not_before(on):
    """Is the capture without effect, and does each replay see the values that its inputs have by then?"""
    x, total = torch.zeros(3, device="cuda"), torch.zeros(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x.cuda() * 2
        part = y[1:]
        part += 1
        total += y
    assert torch.equal(total, torch.zeros(3))
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert torch.equal(y, torch.tensor([2 * value, 2 * value + 1, 2 * value + 1]))
    assert torch.equal(total, torch.tensor([12.0, 14.0, 14.0]))


def test_a_graph_with_a_backward_is_refused(on):
    x = torch.ones(3, requires_grad=True)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(simt.NoGpu, match="backward"), torch.cuda.graph(graph):
        (2 * x).sum().backward()
    assert not torch.cuda.is_current_stream_capturing()


@pytest.mark.parametrize(
    "form", ["torch.cuda.cudart()", "torch.cuda.make_graphed_callables(None, ())", "torch.cuda.utilization()"]
)
def test_what_needs_a_gpu_says_so(form, on):
    """Does the sentence say that there is no GPU, that the file may be right on one, and what works on both?"""
    with pytest.raises(simt.NoGpu, match=r"this machine has none: the file may be right .*synchronize"):
        eval(form)


def test_a_second_gpu_is_refused(on):
    with pytest.raises(RuntimeError, match="one device"):
        X.to("cuda:1")
    with pytest.raises(RuntimeError, match="one device"):
        torch.cuda.set_device(1)


@pytest.mark.slow
def test_enable_lasts_and_other_programs_have_their_own_torch():
    """Does simt.enable() hold until disable(), but not in a function that asks for torch's own device?"""
    program = (
        "import torch, simt\nfrom simt.own_torch import with_own_torch\nown = torch.zeros\n"
        "assert simt.enable() and torch.zeros is own and not torch.zeros(1).is_cuda\n"
        "assert simt.enable(cuda_device=True) and simt.enable() and torch.zeros(1, device='cuda').is_cuda\n"
        "assert not with_own_torch(lambda: torch.zeros(1).is_cuda)() and torch.zeros(1).is_cuda\n"
        "simt.disable()\n"
        "assert torch.zeros is own and not torch.zeros(1).is_cuda and 'is_cuda' not in vars(torch.Tensor)\n"
        "assert 'dynamo' not in str([name for name in __import__('sys').modules if name.startswith('torch._d')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr[-2000:]) == (0, "")


@pytest.mark.slow
def test_torchs_compiler_sees_the_cpu(on):
    compiled = torch.compile(lambda x: torch.relu(x) + torch.ones(3, device=x.device))
    assert torch.equal(compiled(X.cuda()), X + 1)


def test_an_exception_passes_through_as_it_is():
    """Does an exception leave the block as it was raised, even one whose traceback cannot be assigned?"""

    class Error(Exception):
        __traceback__ = property(lambda self: None)  # pyright: ignore[reportAssignmentType]

    with pytest.raises(Error), torch_device.cuda_on_cpu():
        raise Error
    with torch_device.cuda_on_cpu():
        torch_device.disable()
    assert torch_replaced.state.on == 0
