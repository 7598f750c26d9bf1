"""Does the worker carry out commands, and turn whatever a submission does into a message?"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
import torch

from grader.worker import builds, client, failures, protocol
from grader.worker.protocol import Array, Channel, Construct, Done, Failure, Forward, Outputs
from grader.worker.worker import Worker
from tests.grader.scaffold import PROBLEM, RIGHT, forward, line_of

PATH = "/nowhere/scaling.py"


class Talk:
    """A worker served in a thread of this process, and the judge's end of its connection."""

    def __init__(self):
        ours, theirs = socket.socketpair()
        self.channel, self.number = Channel(ours), 0
        self.worker = Worker(Channel(theirs), gpu=False)
        self.worker.device.running = lambda *_, **__: torch.no_grad()  # what simt does there is its own tests' business
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        self.ready = self.next()

    def _serve(self):
        with contextlib.suppress(protocol.ChannelError):
            self.worker.serve()

    def next(self) -> protocol.Reply:
        answer = self.channel.answer(1 << 24, time.monotonic() + 20)
        assert answer.number == self.number
        return answer.reply

    def ask(self, command: protocol.Command) -> protocol.Reply:
        self.number += 1
        self.channel.send(protocol.Order(self.number, command))
        return self.next()

    def build(self, source: str) -> protocol.Reply:
        return self.ask(protocol.Build(source, PATH, 0))

    def construct(self, features: int = 3, scale=(1.0, 2.0, 3.0), name: str = "scale") -> protocol.Reply:
        state = {name: protocol.pack(torch.tensor(scale))}
        args, nothing = protocol.pack([features]), protocol.pack({})
        return self.ask(Construct(args, nothing, state, PROBLEM, "/nowhere/problem.py", nothing, None, 0))

    def forward(self, *inputs: torch.Tensor, calls: int = 1, max_bytes: int = 1 << 20) -> protocol.Reply:
        batches = [[protocol.pack(value) for value in inputs] for _ in range(calls)]
        return self.ask(Forward(batches, [], "forward", None, 1.0, 0, max_bytes))

    def run(self, source: str, **options) -> protocol.Reply:
        """Build, construct, forward on [[1, 1, 1]]."""
        for reply in (self.build(source), self.construct()):
            assert isinstance(reply, (Done, protocol.Constructed)), reply
        return self.forward(torch.ones(1, 3), **options)


@pytest.fixture(scope="module")
def talk():
    talk = Talk()
    yield talk
    talk.channel.sock.close()
    talk.thread.join(5)


def test_importing_the_worker_brings_nothing_of_the_judge_along():
    code = "import grader.worker.main, sys; print(*sorted(m for m in sys.modules if m.startswith('grader.')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = "builds channel claims device extra_files failures gpu_memory layout main messages operators outputs protocol"
    expected = ["grader.worker", *(f"grader.worker.{name}" for name in own.split())]
    expected += [f"grader.worker.{name}" for name in ("tallies", "values", "weights", "worker")]
    assert sorted(out.stdout.split()) == expected


def test_a_right_submission_returns_the_weights_times_the_input(talk):
    run = talk.run(RIGHT).runs[0]
    assert run.kind == "Tensor" and (run.modified, run.aliases, run.reuses) == ([], [], False)
    result = run.results[0]
    assert torch.equal(protocol.unraw(result.dtype, result.shape, result.data), torch.tensor([[1.0, 2.0, 3.0]]))


def test_each_call_gets_its_own_copy_of_the_inputs(talk):
    runs = talk.run(forward("x += 1", "return x * self.scale"), calls=2).runs
    assert runs[0].results[0].data == runs[1].results[0].data
    assert [run.modified for run in runs] == [[0], [0]]


@pytest.mark.parametrize(
    "lines, kind, results",
    [
        (["return None"], "NoneType", 0),
        (["return 3"], "int", 1),
        (["return [x, 2 * x]"], "list of 2 tensors", 2),
        (["return x, (2 * x, {'a': x})"], "tuple of 3 tensors", 3),
        (["return x, 1"], "tuple of 2 things", 2),
        (["return x, None"], "tuple of 2 things", 1),
        (["return x, 'odd'"], "tuple of 2 things", 1),
        (["return x.to_sparse()"], "sparse tensor", 1),
        (["class Odd: pass", "return Odd()"], "Odd", 0),
    ],
)
def test_what_came_back_is_named(talk, lines, kind, results):
    run = talk.run(forward(*lines)).runs[0]
    assert (run.kind, len(run.results)) == (kind, results)


def test_an_output_too_large_to_send_is_described_without_its_elements(talk):
    result = talk.run(forward("return torch.zeros(1).expand(1 << 40)")).runs[0].results[0]
    assert result.shape == [1 << 40] and result.data is None


@pytest.mark.parametrize("lines", [["return x"], ["return x[0, 1:]"], ["return x.view(3, 1)"], ["return x.t()"]])
def test_a_view_of_an_input_is_seen_to_be_one(talk, lines):
    assert talk.run(forward(*lines)).runs[0].aliases == [0]


def test_a_buffer_used_twice_is_seen(talk):
    lines = ["if not hasattr(self, 'y'): self.y = torch.empty_like(x)", "self.y.copy_(x)", "return self.y"]
    assert [run.reuses for run in talk.run(forward(*lines), calls=2).runs] == [False, True]


@pytest.mark.parametrize(
    "raising, kind, message",
    [
        ("raise ValueError('no good')", "ValueError", "no good"),
        ("sys.exit(3)", "SystemExit", "the code called exit(3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("raise type('Odd', (BaseException,), {})('why')", "Odd", "why"),
        ("raise ValueError('\\ud800')", "ValueError", "?"),
    ],
)
def test_any_exception_becomes_a_message_with_its_line(talk, raising, kind, message):
    source = forward(raising)
    reply = talk.run(source)
    assert (reply.reason, reply.kind, reply.message) == ("exception", kind, message)
    assert reply.line == line_of(source, raising.split("(")[0])


def test_a_huge_message_is_cut(talk):
    reply = talk.run(forward("raise ValueError('bad ' * 10_000_000)"))
    assert len(reply.message) < 2 * protocol.MAX_TEXT and reply.message.startswith("bad bad")


def test_an_unreadable_message_is_reported_as_one(talk):
    reply = talk.run(forward("class Odd(Exception):", "    def __str__(self): raise KeyError", "raise Odd()"))
    assert reply.kind == "Odd" and "could not be read" in reply.message


def test_asking_for_a_terabyte_is_out_of_memory(talk):
    assert talk.run(forward("return torch.empty(1 << 50)")).reason == "out_of_memory"


def test_an_exception_in_the_import_is_an_import_error(talk):
    source = RIGHT + "import nothing_of_this_name\n"
    reply = talk.build(source)
    assert (reply.reason, reply.kind) == ("import_error", "ModuleNotFoundError")
    assert reply.line == line_of(source, "nothing_of_this_name")


def test_a_model_new_that_is_gone_after_the_import_is_missed(talk):
    assert talk.build(RIGHT + "del ModelNew\n").reason == "no_model_new"


def test_an_exception_in_the_constructor_is_an_init_error(talk):
    source = RIGHT.replace("super().__init__()", "super().__init__(); raise ValueError(features)")
    assert talk.build(source) == Done()
    reply = talk.construct()
    assert (reply.reason, reply.message, reply.line) == ("init_error", "3", line_of(source, "raise"))


def test_weights_of_another_name_are_taken_and_reported(talk):
    assert talk.build(RIGHT) == Done()
    assert talk.construct(name="gain") == protocol.Constructed([("gain", "scale")])
    assert talk.construct() == protocol.Constructed([])


def test_weights_of_another_shape_are_named(talk):
    assert talk.build(RIGHT) == Done()
    reply = talk.construct(features=4)
    assert reply.reason == "missing_weights" and "(3,) in Model and (4,) in ModelNew" in reply.message


def test_a_model_may_take_its_weights_itself(talk):
    source = RIGHT.replace("self.scale = nn.Parameter(torch.ones(features))", "self.gain = None") + (
        "    def load_reference(self, model):\n        self.scale = 10 * model.scale.detach()\n"
    )
    result = talk.run(source).runs[0].results[0]
    assert torch.equal(protocol.unraw("float32", [1, 3], result.data), torch.tensor([[10.0, 20.0, 30.0]]))


def test_annotations_are_what_they_say(talk):
    """Is a file, and the problem's, compiled as Python compiles it, without what this module imports from
    __future__?
    """
    asking = "\ndef f(x: int): pass\nassert f.__annotations__ == {'x': int}\n"
    loading = RIGHT + "    def load_reference(self, model): pass\n"
    state, args, nothing = {"scale": protocol.pack(torch.ones(3))}, protocol.pack([3]), protocol.pack({})
    assert talk.build(loading + asking) == Done()
    assert (
        talk.ask(Construct(args, nothing, state, PROBLEM + asking, "/nowhere/problem.py", nothing, None, 0))
        == protocol.Constructed()
    )


def test_a_lists_sources_are_labelled_up_to_a_limit():
    """Do the strings of a build fit into the message that the judge takes?"""
    labelled = builds.label_sources(
        cpp_sources=["\U0001f600" * 10**6] * 30, cuda_sources=["a", "\U0001f600" * 10**6, "b"]
    )
    assert sum(len(label.encode()) + len(text.encode()) + 20 for label, text in labelled.items()) < client.REPLY_BYTES
    assert (labelled["cuda_sources[0]"], labelled["cuda_sources[2]"]) == ("a", "") and labelled["cuda_sources[1]"]


def test_a_batch_runs_on_prepared_inputs(talk):
    assert isinstance(talk.run(RIGHT), Outputs)
    assert talk.ask(protocol.Prepare([[Array("float32", [1, 3], b"\0" * 12)]])) == protocol.Prepared()
    assert talk.ask(protocol.Batch([0, 0])) == protocol.Timed()
    assert talk.ask(protocol.Batch([])) == protocol.Timed()
    assert isinstance(talk.ask(protocol.Batch([7])), Failure)


# --- builds ---


def test_the_worker_reports_when_a_compiler_runs_and_what_it_compiled(talk):
    def original(name, cpp_sources, cuda_sources=None, functions=None):
        return name

    wrapped = talk.worker.builds.wrap(original)
    assert wrapped("it", ["int a;", "int b;"], cuda_sources="int c;") == "it"
    assert talk.next() == protocol.Building("it")
    built = talk.next()
    assert built.sources == {
        "cpp_sources": "int a;\nint b;",
        "cpp_sources[0]": "int a;",
        "cpp_sources[1]": "int b;",
        "cuda_sources": "int c;",
    }


CUDA = "\n__global__ void k() {\n    int i = z;\n}\n"
CPP = "void run();"
WRITTEN = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n" + CUDA


def explained(tmp_path, monkeypatch, text: str, cpp: str = CPP) -> failures.ExplainedBuildError:
    """Return the error of a build by torch whose compilers printed `text`."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    folder = tmp_path / "it"
    folder.mkdir()
    (folder / "cuda.cu").write_text(WRITTEN)
    (folder / "main.cpp").write_text("#include <torch/extension.h>\n" + cpp + "\nPYBIND11_MODULE {}\n")
    error = RuntimeError(f"Error building extension 'it': [1/3] c++\n{text}")
    return builds.explain_torch_build(error, "it", {"cuda_sources": CUDA, "cpp_sources": cpp}, ["run"])


def test_nvccs_line_is_turned_into_the_students(tmp_path, monkeypatch):
    at = f"{tmp_path}/it/cuda.cu(6)"
    printed = f'{at}: warning #177-D: unused\n{at}: error: identifier "z" is undefined\n'
    error = explained(tmp_path, monkeypatch, printed)
    assert error.reason == "compile_error"
    (note,) = error.notes
    assert (note.source, note.line, note.text.strip()) == ("cuda_sources", 3, "int i = z;")


def test_gccs_line_is_turned_into_the_students(tmp_path, monkeypatch):
    error = explained(tmp_path, monkeypatch, "/tmp/x/it/main.cpp:2:6: error: expected ';'\n", cpp="void run()")
    assert (error.notes[0].source, error.notes[0].line) == ("cpp_sources", 1)


@pytest.mark.parametrize("cpp, reason", [("void other();", "undeclared_function"), ("  \n", "missing_cpp_sources")])
def test_an_undeclared_function_is_distinguished_from_no_declarations(tmp_path, monkeypatch, cpp, reason):
    printed = "/tmp/x/it/main.cpp:3:40: error: ‘run’ was not declared in this scope\n"
    error = explained(tmp_path, monkeypatch, printed, cpp=cpp)
    assert error.reason == reason and "`run`" in error.notes[0].message


def test_an_undefined_reference_is_a_link_error(tmp_path, monkeypatch):
    assert explained(tmp_path, monkeypatch, "ld: undefined reference to `run()'").reason == "link_error"


def test_a_failed_build_of_torch_reaches_the_judge_with_its_reason_and_notes(tmp_path, monkeypatch):
    error = explained(tmp_path, monkeypatch, "/tmp/x/it/main.cpp:2:6: error: expected ';'\n", cpp="void run()")
    made = failures.describe_exception(error, "import_error", PATH)
    assert (made.reason, made.kind, made.notes) == ("compile_error", "RuntimeError", error.notes) and error.notes


def test_an_undefined_symbol_is_named_as_it_is_written():
    made = failures.describe_exception(
        ImportError("/x/it.so: undefined symbol: _Z3runN2at6TensorE"), "import_error", PATH
    )
    assert made.reason == "link_error" and "`run(at::Tensor)`" in made.notes[0].message


@pytest.mark.parametrize(
    "printed, reason, broken",
    [
        ("CUDA error: an illegal memory access was encountered\nmore", "illegal_address", True),
        ("CUDA error: invalid configuration argument", "launch_error", False),
        ("CUDA error: device-side assert triggered", "device_assert", True),
        ("CUDA out of memory. Tried to allocate 20.00 GiB", "out_of_memory", False),
    ],
)
def test_cudas_errors_are_known_by_what_they_say(printed, reason, broken):
    made = failures.describe_exception(RuntimeError(printed), "exception", PATH)
    assert (made.reason, made.broken) == (reason, broken)


@pytest.mark.skipif(torch.cuda.is_available(), reason="nothing is missing on a machine with a GPU")
@pytest.mark.parametrize(
    "error",
    [
        AssertionError("Torch not compiled with CUDA enabled"),
        NotImplementedError("Could not run 'aten::empty' with arguments from the 'CUDA' backend."),
        RuntimeError("Found no NVIDIA driver on your system."),
    ],
)
def test_what_torch_refuses_without_a_gpu_is_explained(error):
    """Does the message say that a GPU is missing, and keep what torch says?"""
    made = failures.describe_exception(error, "exception", PATH)
    assert "this machine has none: the file may be right" in made.message and str(error) in made.message


CUDA_CALLS = """
import torch

assert torch.cuda.device_count() == 1 and torch.device("cuda").type == "cuda"

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(features, device="cuda"))
        self.side = torch.cuda.Stream()

    def forward(self, x):
        assert x.is_cuda and self.scale.is_cuda
        torch.cuda.synchronize()
        with torch.cuda.stream(self.side):
            return Scaled.apply(x.cuda(), self.scale)

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale.to(x.device)

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        assert gradient.is_cuda
        return gradient * scale, (gradient * x).sum(0) + torch.zeros(1, device=x.device)
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch is left as it is on a machine with a GPU")
def test_a_submission_may_call_torchs_cuda_without_a_gpu(talk):
    """At import, in __init__, forward and backward, and does the worker itself still see the CPU?"""
    assert isinstance(talk.build(CUDA_CALLS), Done)
    talk.construct()
    reply = talk.forward(torch.ones(2, 3))
    assert isinstance(reply, Outputs) and reply.runs[0].results[0].device == "cpu", reply
    gradient = protocol.Gradient(
        inputs=[protocol.pack(torch.ones(2, 3))],
        differentiable=[0],
        parameters=["scale"],
        upstream=[protocol.pack(torch.ones(2, 3))],
        strided=False,
        other=[],
        outputs=[],
        schedule="forward",
        guard=None,
        kernel_seconds=1.0,
        seconds=0,
        max_bytes=1 << 20,
    )
    found = talk.ask(gradient)
    assert isinstance(found, protocol.Gradients) and found.graph, found
    assert not torch.cuda.is_available()


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch is left as it is on a machine with a GPU")
def test_moves_to_the_gpu_are_no_operators_and_hide_none():
    from grader.worker.operators import watch
    from simt.runtime.torch_device import cuda_on_cpu

    x = torch.arange(16.0)
    with watch(8, PATH) as seen, cuda_on_cpu():
        torch.zeros(16, device="cuda").copy_(x.cuda().to("cuda").cpu())
        assert seen.lines == {}
        torch.relu(x.to("cuda"))
    assert list(seen.lines) == ["relu"]


def test_a_forked_copy_of_the_worker_says_nothing(talk):
    before = talk.worker.pid
    talk.worker.pid = -1
    child = os.fork()
    if child == 0:
        talk.worker.reply(Done())  # ends the copy
        os._exit(9)
    talk.worker.pid = before
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(talk.run(RIGHT), Outputs)
