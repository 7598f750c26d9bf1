"""Does every submission, honest or not, end in the right verdict, and does nothing of it stay behind?"""

import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

import simt
from grader import channel, report, sandbox
from grader.cases import ProblemError
from grader.channel import Channel
from grader.client import Client
from grader.judge import Limits, Refused, grade
from grader.verdict import EXPLANATIONS, Outcome, Reason, StageName, Status
from tests.grader.scaffold import HEAD, PROBLEM, RIGHT, forward, line_of, problem  # noqa: F401

OWN = 1.5  # seconds a submission has for itself


@pytest.fixture
def judged(tmp_path, problem):  # noqa: F811
    """Grades a source text; nothing of it may still run afterwards."""

    def judge(source: str, **options):
        path = tmp_path / "scaling.py"
        path.write_text(source)
        verdict = grade(path, options.pop("problem", problem), limits=Limits(own=OWN), device="cpu", seed=1, **options)
        assert not left_over()
        return verdict

    return judge


def left_over() -> list[int]:
    """Processes of workers started from here that still run: other tests may run beside this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            mine = f"{sandbox.JUDGE}={os.getpid()}".encode() in (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if mine and state != "Z":
            found.append(int(entry.name))
    return found


# --- right ---


def test_a_right_submission_passes_every_stage_that_there_is(judged):
    verdict = judged(RIGHT)
    assert verdict.outcome is Outcome.passed and verdict.reason is None
    assert {s.name.value: s.status.value for s in verdict.stages} == {
        "contract": "passed",
        "build": "passed",
        "correct": "passed",
        "safe": "passed",
        "gradient": "passed",
        "fast": "skipped",
    }
    assert [case.name for case in verdict.stage("correct").cases] == ["one row", "wide"]
    assert verdict.stage("fast").reason is Reason.no_gpu and "GPU" in verdict.stage("fast").message
    assert verdict.sandbox in (sandbox.NONE, sandbox.BUBBLEWRAP) and len(verdict.submission.sha256) == 64


def test_a_submission_without_a_kernel_passes_and_is_told(judged):
    """Does whoever reads the verdict learn that PyTorch's operators made the results, in the table, the summary and the JSON?"""
    verdict = judged(RIGHT)
    assert verdict.outcome is Outcome.passed and verdict.doubt is Reason.no_kernel and verdict.reason is None
    assert [(s.name.value, s.message) for s in verdict.stages if s.reason is Reason.no_kernel] == [("correct", EXPLANATIONS[Reason.no_kernel])]
    console = Console(file=io.StringIO(), width=120)
    report.show(console, verdict)
    report.show_summary(console, [verdict])
    assert EXPLANATIONS[Reason.no_kernel] in console.file.getvalue() and re.search(r"passed +no kernel +\d", console.file.getvalue())
    assert judged(forward("return x")).doubt is None  # wrong: that is told already


MADE = PROBLEM.split("CASES")[0].replace("batch_size = 4", "batch_size = 40").replace("features = 6", "features = 64")


@pytest.fixture
def foreign(tmp_path):
    """Writes a problem without CASES, with these replacements."""

    def write(*replaced: tuple[str, str]) -> Path:
        text = MADE
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "foreign.py"
        path.write_text(text)
        return path

    return write


def shown(verdict) -> str:
    """What a wide terminal shows."""
    console = Console(file=io.StringIO(), width=400)
    report.show(console, verdict)
    return console.file.getvalue()


def test_a_made_case_that_fails_is_told_with_its_sizes(judged, foreign):
    """Does somebody who counts on 64 features see, in report and JSON, that the failing case has 17, and may ask for it by its short name?"""
    verdict = judged(forward("return x * self.scale + (x.shape[1] % 16 and x.shape[1] > 1)"), problem=foreign())
    (evidence,) = verdict.stage("correct").evidence
    assert evidence.case == "odd (batch_size=3, features=17)" and f"case           {evidence.case}" in shown(verdict)
    assert f"wrong in: {evidence.case}; odd, normal inputs" in shown(verdict)
    verdict = judged(RIGHT, problem=foreign(), case="odd")
    assert [case.name for case in verdict.stage("correct").cases] == [evidence.case]


def test_few_sizes_are_told_with_a_result_that_passed(judged, foreign):
    """Does a report on cases of one size say what that is worth?"""
    few = foreign(("torch.rand(batch_size, features)", "torch.rand(40, 64)"), ("return [features]", "return [64]"), ("batch_size = 40", ""), ("features = 64", ""))
    verdict = judged(RIGHT, problem=few)
    assert verdict.outcome is Outcome.passed
    assert "All cases have the same sizes" in shown(verdict) and EXPLANATIONS[Reason.no_kernel] in shown(verdict)
    assert "the same sizes" not in shown(judged(RIGHT, problem=foreign()))


def test_a_random_problem_is_refused(judged, foreign):
    """Is nobody graded by a Model with dropout?"""
    with pytest.raises(ProblemError, match="Model itself is random: called twice"):
        judged(RIGHT, problem=foreign(("return x * self.scale", "return nn.functional.dropout(x * self.scale)")))


@pytest.mark.parametrize("line", ["return x * self.scale + torch.rand(1)", "return x * self.scale + vars(self).setdefault('drawn', torch.rand(1))"])
def test_chance_without_a_kernel_is_no_race(judged, problem, line):  # noqa: F811
    """Where nothing was launched: does nothing speak of races, barriers and memory?"""
    for given in (line, line.replace("torch.rand(1)", "0 * torch.rand(1)")):
        verdict = judged(forward(given))
        text = shown(verdict)
        assert not any(word in text for word in ("race", "__syncthreads", "memory that was never set")), text
        assert (verdict.outcome is Outcome.passed) == ("0 *" in given)


def test_chance_that_values_do_not_tell_is_told_as_chance(judged, problem):  # noqa: F811
    """Right at first and wrong when constructed again, or called again: is the reason given without a kernel that there is not?"""
    verdict = judged(forward("self.calls = getattr(self, 'calls', 0) + 1", "return x * self.scale + (self.calls > 1)"))
    safe = verdict.stage("safe")
    assert safe.reason is Reason.nondeterministic and "no kernel was launched: look for what forward draws at random" in safe.message
    assert report.advice(safe) == ""


def test_a_gradient_that_model_itself_loses_is_not_asked_for(judged, foreign):
    """Model writes to a tensor of its own that its last backward needs: is a copy of it let pass?"""
    keeps = ("self.scale = nn.Parameter(torch.ones(features))", "self.scale = nn.Parameter(torch.ones(features)); self.kept = torch.zeros(features)")
    lines = "self.kept.copy_(x.mean(0)); self.kept = torch.tanh(self.kept * self.scale); return x * self.scale + self.kept"
    source = RIGHT.replace(*keeps).replace("return x * self.scale", lines)
    verdict = judged(source, problem=foreign(keeps, ("return x * self.scale", lines)))
    assert verdict.outcome is Outcome.passed, shown(verdict)
    assert "Model's own is lost when Model is called again" in verdict.stage("gradient").message


# --- wrong ---

# One submission that goes wrong in another way for each number of rows, so that one worker does for all.
WRONG = {
    "None": ("None", Reason.wrong_type),
    "a tuple": ("(right, x)", Reason.wrong_type),
    "a list of one": ("[right]", Reason.wrong_type),
    "a dict": ("{'y': right}", Reason.wrong_type),
    "a sparse tensor": ("right.to_sparse()", Reason.wrong_type),
    "another shape": ("right[:, 1:]", Reason.wrong_shape),
    "a shape of a terabyte": ("torch.zeros(1).expand(1 << 40)", Reason.wrong_shape),
    "another dtype": ("right.half()", Reason.wrong_dtype),
    "a dtype that cannot be sent": ("torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)", Reason.wrong_dtype),
    "no memory": ("right.to('meta')", Reason.wrong_device),
    "other values": ("right + 0.1", Reason.wrong_values),
    "NaN": ("right * float('nan')", Reason.non_finite),
    "a terabyte": ("torch.empty(1 << 40)", Reason.out_of_memory),
    "an exception": ("throw(ValueError('no ' * 10_000_000))", Reason.exception),
    "sys.exit": ("sys.exit(0)", Reason.exception),
    "endless recursion": ("self.forward(x)", Reason.exception),
}
# The same for what is right by its values.
UNSAFE = {
    "nothing wrong": ("right", None),
    "writes to its input": ("(right, x.zero_())[0]", Reason.input_modified),
    "returns its input": ("x.copy_(right)", Reason.input_modified),
    "keeps its output": ("self.kept.copy_(right)", Reason.output_reused),
    "is right once": ("right + (self.calls > 1)", Reason.nondeterministic),
}


def by_rows(expressions: list[str]) -> str:
    """A submission that returns expression number n for n + 1 rows."""
    return forward(
        "right = x * self.scale",
        "def throw(error): raise error",
        "self.calls = getattr(self, 'calls', 0) + 1",
        "self.kept = getattr(self, 'kept', torch.empty_like(x))",
        *(f"if x.shape[0] == {n}: return {text}" for n, text in enumerate(expressions, 1)),
    )


def many_cases(tmp_path: Path, names: list[str]) -> Path:
    """The problem with a case of this name for each number of rows."""
    path = tmp_path / "many.py"
    cases = [{"name": name, "set": {"batch_size": n}, "inputs": "normal"} for n, name in enumerate(names, 1)]
    path.write_text(PROBLEM.split("CASES")[0] + f"CASES = {cases!r}\n")
    return path


def test_each_wrong_result_fails_with_its_reason(judged, tmp_path):
    verdict = judged(by_rows([text for text, _ in WRONG.values()]), problem=many_cases(tmp_path, list(WRONG)))
    assert {c.name: c.reason for c in verdict.stage("correct").cases} == {n: r for n, (_, r) in WRONG.items()}
    assert (verdict.outcome, verdict.reason) == (Outcome.failed, Reason.wrong_type)
    assert "nothing (None)" in verdict.first_problem.message


def test_right_values_are_not_enough(judged, tmp_path):
    verdict = judged(by_rows([text for text, _ in UNSAFE.values()]), problem=many_cases(tmp_path, list(UNSAFE)))
    assert verdict.stage("correct").status is Status.passed
    assert {c.name: c.reason for c in verdict.stage("safe").cases} == {n: r for n, (_, r) in UNSAFE.items()}
    assert (verdict.first_problem.name, verdict.reason) == (StageName.safe, Reason.input_modified)


def test_a_copy_of_the_first_result_is_no_result_for_other_values(judged):
    verdict = judged(forward("self.kept = getattr(self, 'kept', x * self.scale)", "return self.kept.clone()"))
    assert (verdict.first_problem.name, verdict.reason) == (StageName.safe, Reason.output_reused)
    assert "the call before" in verdict.first_problem.message and verdict.first_problem.evidence[0].case == "wide"


def test_other_values_show_what_is_kept_in_part(judged):
    verdict = judged(forward("self.mean = getattr(self, 'mean', x[0, 0].item())", "return x * self.scale * (x[0, 0].item() / self.mean)"))
    assert (verdict.first_problem.name, verdict.reason) == (StageName.safe, Reason.wrong_values)


def test_values_that_model_refuses_are_not_tried(judged, tmp_path):
    sorted_only = tmp_path / "sorted_only.py"
    refusing = PROBLEM.replace("return x * self.scale", "assert (x.diff() >= 0).all()\n        return x * self.scale")
    sorted_only.write_text(refusing.replace("torch.rand(batch_size, features)", "torch.rand(batch_size, features).sort().values").replace('"normal"', '"file"'))
    assert judged(RIGHT, problem=sorted_only).outcome is Outcome.passed


def test_random_results_are_explained_though_they_are_wrong(judged):
    verdict = judged(forward("return x * self.scale + torch.rand_like(x)"))
    assert verdict.reason is Reason.wrong_values
    assert verdict.stage("safe").reason is Reason.nondeterministic


def test_what_model_itself_does_to_its_input_is_allowed(judged, tmp_path):
    mutating = tmp_path / "mutating.py"
    mutating.write_text(PROBLEM.replace("return x * self.scale", "return x.mul_(self.scale)"))
    assert judged(forward("return x.mul_(self.scale)"), problem=mutating).outcome is Outcome.passed


RETURNS = ["x * self.scale, None", "[x * self.scale]", "(x * self.scale).sum().item()", "{'a': x * self.scale, 'b': (x + 1, 3, None)}"]


@pytest.mark.parametrize("returned", RETURNS)
def test_models_own_code_is_right_whatever_it_returns(judged, tmp_path, returned):
    """Do None, numbers and dicts beside tensors count on both sides alike?"""
    odd = tmp_path / "odd.py"
    odd.write_text(PROBLEM.replace("return x * self.scale", f"return {returned}"))
    assert judged(forward(f"return {returned}"), problem=odd).outcome is Outcome.passed


@pytest.mark.parametrize(
    "returned, reason",
    [("right, 3, None", None), ("right, 4, None", Reason.wrong_values), ("3, right, None", Reason.wrong_shape), ("right, None, None", Reason.wrong_type), ("right, 3", Reason.wrong_type)],
)
def test_what_stands_beside_a_tensor_must_be_right_too(judged, tmp_path, returned, reason):
    odd = tmp_path / "odd.py"
    odd.write_text(PROBLEM.replace("return x * self.scale", "return x * self.scale, 3, None"))
    assert judged(forward("right = x * self.scale", f"return {returned}"), problem=odd).reason is reason


def test_a_copy_of_the_first_result_is_no_result_for_other_integers(judged, tmp_path):
    """Are values moved where all inputs are integers, too?"""
    whole = tmp_path / "whole.py"
    whole.write_text(PROBLEM.replace("torch.rand(batch_size, features)", "torch.randint(0, 1000, (batch_size, features))"))
    kept = forward("self.kept = getattr(self, 'kept', x * self.scale)", "return self.kept.clone()")
    assert judged(kept, problem=whole).reason is Reason.output_reused
    assert judged(RIGHT, problem=whole).outcome is Outcome.passed


# --- hostile ---

DEATHS = {
    "leaves": (["os._exit(3)"], "exit status 3"),
    "kills itself": (["os.kill(os.getpid(), signal.SIGKILL)"], "SIGKILL"),
    "reads address 8": (["ctypes.string_at(8)"], "segmentation fault"),
    "closes every file": (["os.closerange(0, 1000)", "return x"], "closed its connection"),
    "writes into every file": (
        ["for fd in range(3, 100):", "    try: os.write(fd, b'rubbish' * 9)", "    except OSError: pass", "return x"],
        "broke the connection",
    ),
}


@pytest.mark.parametrize("lines, said", DEATHS.values(), ids=DEATHS.keys())
def test_a_worker_that_dies_is_a_crash_and_says_how(judged, lines, said):
    source = forward(*lines)
    verdict = judged(source)
    assert verdict.reason is Reason.crash and said in verdict.first_problem.message
    if "string_at" in source:
        assert verdict.first_problem.evidence[0].line == line_of(source, "string_at")
    assert [case.status for case in verdict.stage("correct").cases] == [Status.failed, Status.skipped]
    assert verdict.stage("safe").reason is Reason.not_reached


def test_a_flood_of_sources_is_refused(judged):
    """Is a message of a build too large for what it says, before many of them are too much for the judge?"""
    lines = [
        "channel, frame = sys.modules['grader.channel'], sys._getframe()",
        "while type(frame.f_locals.get('self')).__name__ != 'Worker': frame = frame.f_back",
        "frame.f_locals['self'].reply(channel.Building('x'))",
        "frame.f_locals['self'].reply(channel.Built('x', 0.0, {'cuda_sources': 'A' * (5 << 20)}))",
        "return x * self.scale",
    ]
    verdict = judged(forward(*lines))
    assert verdict.reason is Reason.crash and "more than the 4194304 allowed" in verdict.first_problem.message


def test_of_many_builds_a_bounded_part_is_kept():
    """Does the judge's memory not grow with the number of builds that a submission makes up?"""
    ours, theirs = socket.socketpair()
    made = Client(SimpleNamespace(sock=ours, alive=lambda: True), Path("it.py"), print, 60.0)
    talk = Channel(theirs)

    def flood() -> None:
        number = talk.order().number
        for n in range(100):
            talk.send(channel.Answer(number, channel.Building("x")))
            talk.send(channel.Answer(number, channel.Built("x", 0.0, {f"part {part}": f"{n // 2}" * 30_000 for part in range(50)})))
        talk.send(channel.Answer(number, channel.Done()))

    with ours, theirs:
        threading.Thread(target=flood, daemon=True).start()
        assert made.ask(channel.Release(), 30.0) == channel.Done()
    assert [one["part 0"][:2] for one in made.sources] == [str(n) for n in range(49, 17, -1)]
    assert all(sum(map(len, one.values())) <= 4 * channel.MAX_SOURCE for one in made.sources)


def test_an_endless_loop_in_forward_is_stopped_and_its_line_named(judged):
    source = forward("while True:", "    pass")
    verdict = judged(source)
    assert verdict.reason is Reason.timeout
    assert verdict.first_problem.evidence[0].line in (line_of(source, "while True"), line_of(source, "    pass"))


def test_an_endless_loop_in_the_import_is_stopped(judged):
    assert judged("while True: pass\n" + RIGHT).reason is Reason.build_timeout


def test_children_in_sessions_of_their_own_are_ended_and_floods_of_output_kept_short(judged):
    fork = ["if os.fork() == 0:", "    os.setsid()", "    time.sleep(600)"]
    flood = ["print('x' * 5_000_000)", "print('the last word')"]
    verdict = judged(forward(*fork, *flood, "return x * self.scale"))
    assert verdict.outcome is Outcome.passed
    assert "the last word" in verdict.output and len(verdict.output) <= 4000


def test_a_worker_that_dies_before_its_child_is_noticed_at_once(judged):
    verdict = judged(forward("if os.fork() == 0: time.sleep(600)", "os._exit(0)"))
    assert verdict.reason is Reason.crash and verdict.stage("correct").seconds < OWN


def test_leaving_during_the_import_is_an_import_error(judged):
    verdict = judged("import sys\nsys.exit(2)\n" + RIGHT)
    assert (verdict.reason, verdict.first_problem.evidence[0].line) == (Reason.import_error, 2)


def test_changing_the_workers_own_code_does_not_make_it_right(judged):
    lie = "import sys\nchannel = sys.modules['__main__'].channel\nchannel.raw = lambda tensor: b''\n"
    assert judged(lie + RIGHT).outcome is Outcome.failed


# --- contract, machine, interruption ---


@pytest.mark.parametrize(
    "source, reason",
    [
        ("", Reason.empty_file),
        ("def f(:\n", Reason.syntax_error),
        ("import torch\n", Reason.no_model_new),
        (RIGHT.replace("self, features", "self"), Reason.bad_signature),
    ],
)
def test_a_file_that_is_no_submission_is_not_run(judged, source, reason):
    verdict = judged(source)
    assert (verdict.first_problem.name, verdict.reason) == (StageName.contract, reason)
    assert all(stage.reason is Reason.not_reached for stage in verdict.stages[1:])


def test_a_missing_file_is_unreadable(tmp_path):
    assert grade(tmp_path / "nothing.py").reason is Reason.unreadable


def test_the_exercise_as_handed_out_is_not_attempted(tmp_path):
    from grader import student

    solution = (student.KERNELS_REF / "groupnorm" / "solution.py").read_text()
    skeleton = student.skeleton(solution, "groupnorm")
    path = tmp_path / "groupnorm.py"
    path.write_text(skeleton + "\n# I did nothing but this comment.\n")
    assert grade(path).outcome is Outcome.not_attempted


@pytest.mark.parametrize("source", ["", "def f(:\n"])
def test_a_verdict_without_a_run_names_the_problem_too(tmp_path, source):
    """Is the problem of a handed-in file that is not read any further the same as that of one that is graded?"""
    for file, name in (("groupnorm_ada.py", "groupnorm"), ("ada.conv2d_backward.py", "conv2d_backward")):
        (tmp_path / file).write_text(source)
        assert grade(tmp_path / file).problem == name


def test_a_handed_in_exercise_without_its_stamp_is_not_attempted(tmp_path):
    """Is the stub known under the student's own name for it, and without its last line?"""
    from grader import student

    text = (student.KERNELS_STUDENT / "groupnorm.py").read_text()
    (tmp_path / "groupnorm_bob.py").write_text(student.STAMP.sub("", text))
    assert grade(tmp_path / "groupnorm_bob.py").outcome is Outcome.not_attempted


def test_a_problem_that_no_name_leads_to_is_the_callers_fault(tmp_path):
    path = tmp_path / "no_such_problem.py"
    path.write_text(RIGHT)
    with pytest.raises(ProblemError, match="no_such_problem"):
        grade(path)


def test_a_model_that_fails_is_not_the_submissions_fault(judged, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(PROBLEM.replace("return x * self.scale", "raise ValueError('mine')"))
    with pytest.raises(ProblemError, match=r"broken\.py, line \d+: Model.forward raised ValueError: mine"):
        judged(RIGHT, problem=broken)


def test_a_problem_that_computes_nothing_is_refused(judged):
    """Does no wrong result pass because there is nothing to compare it with?"""
    with pytest.raises(ProblemError, match="'one row' leaves nothing to compare"):
        judged(forward("return x + 1"), overrides={"batch_size": "0"})


def test_a_required_sandbox_that_is_not_there_is_refused(tmp_path, problem, monkeypatch):  # noqa: F811
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    with pytest.raises(Refused, match="not installed"):
        grade(path, problem, require_sandbox=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_asking_for_a_gpu_where_there_is_none_is_refused(tmp_path, problem):  # noqa: F811
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    with pytest.raises(Refused, match="no GPU"):
        grade(path, problem, device="cuda")


def test_an_interrupt_ends_the_worker_and_is_the_verdict(judged):
    def interrupt(stage, text):
        if stage is StageName.correct:
            raise KeyboardInterrupt

    verdict = judged(RIGHT, progress=interrupt)
    assert (verdict.outcome, verdict.reason) == (Outcome.error, Reason.interrupted)


def test_a_judge_that_is_killed_takes_its_worker_along(tmp_path, problem):  # noqa: F811
    path, pid_file = tmp_path / "scaling.py", tmp_path / "pid"
    path.write_text(HEAD + f"        open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n        time.sleep(600)\n")
    code = f"from grader import grade; grade({str(path)!r}, {str(problem)!r}, device='cpu')"
    judge = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)})
    if not sandbox.why_not():
        pytest.skip("in a sandbox the worker cannot say its number")
    wait_for(lambda: pid_file.exists() and pid_file.read_text())
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    wait_for(lambda: not Path(f"/proc/{pid_file.read_text()}").exists())


def wait_for(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- CUDA on the CPU ---

CUDA = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void scale_rows(const float* x, const float* s, float* y, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * s[i % width];
}

torch::Tensor run(torch::Tensor x, torch::Tensor s) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_rows<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));
    return y;
}
"""

extension = load_inline("scaling_ext", "torch::Tensor run(torch::Tensor x, torch::Tensor s);", cuda, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return extension.run(x, self.scale)
'''


# The kernel's line for each number of rows: what is wrong with it, one build for all.
KERNELS = {
    "right": ("if (i < n) y[i] = x[i] * s[i % width];", None),
    "no bounds check": ("y[i] = x[i] * s[i % width];", Reason.out_of_bounds),
    "a barrier for some": ("if (threadIdx.x < 9) __syncthreads(); if (i < n) y[i] = x[i];", Reason.barrier_divergence),
    "too many threads": ("if (i < n) y[i] = x[i];", Reason.launch_error),
    "one not written": ("if (i < n - 1) y[i] = x[i] * s[i % width];", Reason.not_written),
}


def kernels() -> str:
    """CUDA with a kernel of its own for each number of rows."""
    head, body = CUDA.split("__global__")[0], CUDA.split("extension =")[1]
    made, calls = "", ""
    for n, (line, reason) in enumerate(KERNELS.values(), 1):
        made += f"__global__ void k{n}(const float* x, const float* s, float* y, int n, int width) {{\n"
        made += f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {line} // {n}\n}}\n"
        threads = 2048 if reason is Reason.launch_error else 128
        calls += f"    if (x.size(0) == {n}) k{n}<<<(n + 127) / 128, {threads}>>>"
        calls += "(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));\n"
    run = "torch::Tensor run(torch::Tensor x, torch::Tensor s) {\n    auto y = torch::empty_like(x);\n"
    run += f"    int n = x.numel();\n{calls}    return y;\n}}\n"
    return head + made + run + '"""\n\nextension =' + body


def test_each_wrong_kernel_is_told_by_its_reason(judged, tmp_path):
    verdict = judged(kernels(), problem=many_cases(tmp_path, list(KERNELS)))
    assert {c.name: c.reason for c in verdict.stage("correct").cases} == {n: r for n, (_, r) in KERNELS.items()}
    assert verdict.first_problem.evidence[0].line == line_of(kernels(), "// 2")
    assert verdict.first_problem.evidence[0].text in kernels()


def test_a_compile_error_is_told_by_the_line_of_the_file(judged):
    source = CUDA.replace("s[i % width];", "s[i % width] * z;")
    verdict = judged(source)
    assert (verdict.first_problem.name, verdict.reason) == (StageName.build, Reason.compile_error)
    assert verdict.first_problem.evidence[0].line == line_of(source, "s[i % width]")


def test_the_launches_of_the_failing_call_are_in_the_evidence(judged):
    """Of two kernels, launched once a call, are both told with their grids and blocks, in order, and those of the failing case alone?"""
    first = "    scale_rows<<<(n + 127) / 128, 128>>>"
    more = "    scale_rows<<<dim3(1, 2, 3), dim3(4, 5, 6)>>>(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), 0, 1);\n"
    assert first in CUDA
    verdict = judged(CUDA.replace(first, more + first).replace("x[i] * s[i % width];", "x[i] * s[i % width] + (n > 6);"))
    (evidence,) = verdict.stage("correct").evidence
    assert (verdict.reason, evidence.case) == (Reason.wrong_values, "wide")
    assert {one.kernel for one in evidence.launches} == {"scale_rows"}
    assert [(one.grid, one.block) for one in evidence.launches] == [((1, 2, 3), (4, 5, 6)), ((1, 1, 1), (128, 1, 1))]


def test_a_misaligned_access_that_stops_the_kernel_is_told_with_its_address(judged):
    """The processor tells no address of a float4 that is copied whole: is the sentence the checks' one, with the numbers?"""
    line = "if (i < n) y[i] = x[i] * s[i % width];"
    verdict = judged(CUDA.replace(line, f"{line} if (i == 0) *(float4*)(y + 1) = *(const float4*)(x + 2);"))
    assert (verdict.first_problem.name, verdict.reason) == (StageName.correct, Reason.misaligned)
    said = verdict.first_problem.message
    assert "16 bytes at once of `" in said and ("It begins at byte 8 of 24, 8 past" in said or "It begins at byte 4 of 24, 4 past" in said)


@pytest.mark.parametrize("error, outcome", [(simt.CacheError("The folder is full: set SIMT_CACHE."), "error"), (ValueError("SIMT_THREADS is 'x'."), "refused")])
def test_a_machine_that_cannot_build_is_told_at_once(monkeypatch, judged, error, outcome):
    """Does what no submission can build with end the grading with its sentence, before the worker compiles everything again?"""

    def fail():
        raise error

    monkeypatch.setattr(simt, "warm_up", fail)
    monkeypatch.setattr("grader.client.Client.ask", lambda *_: pytest.fail("the worker was asked to build"))
    if outcome == "refused":
        with pytest.raises(Refused, match="SIMT_THREADS is 'x'"):
            judged(RIGHT)
        return
    verdict = judged(RIGHT)
    assert (verdict.outcome, verdict.reason) == (Outcome.error, Reason.grader_error)
    assert verdict.first_problem.name is StageName.build and verdict.first_problem.message == str(error)


def test_a_write_beside_a_tensor_is_told_with_its_thread(judged):
    """A plain run sees the bytes beside a tensor changed after the launch: is the sentence the checks' one, with the kernel's line?"""
    source = CUDA.replace("if (i < n) y[i] = x[i] * s[i % width];", "if (i <= n) y[i] = s[i % width] * (i < n ? x[i] : 0.f);  // here")
    verdict = judged(source)
    (evidence,) = verdict.first_problem.evidence
    assert (verdict.first_problem.name, verdict.reason) == (StageName.correct, Reason.out_of_bounds)
    assert (evidence.thread, evidence.block, evidence.line) == ([6, 0, 0], [0, 0, 0], line_of(source, "// here"))
    assert "writes element 6 of `y`" in verdict.first_problem.message
    assert [case.reason for case in verdict.stage("correct").cases] == [Reason.out_of_bounds] * 2


def test_a_missing_barrier_is_a_race(judged):
    racing = CUDA.replace(
        "if (i < n) y[i] = x[i] * s[i % width];",
        "__shared__ float t[128]; if (i < n) t[threadIdx.x] = x[i]; "
        "int j = threadIdx.x ? threadIdx.x - 1 : 0; if (i < n) y[i] = x[i] * s[i % width] + 0.f * t[j];",
    )
    verdict = judged(racing)
    assert verdict.stage("safe").reason is Reason.race
    assert "t[j]" in verdict.stage("safe").evidence[0].text


# --- the sandbox and the GPU, where there are any ---


def test_simts_cache_is_where_simt_says():
    assert sandbox.simt_cache() == simt.cache_dir()


def test_in_the_sandbox_there_is_no_network_no_home_and_nothing_to_write_to(judged, tmp_path):
    if sandbox.why_not():
        pytest.skip(sandbox.why_not())
    secret = Path.home() / ".grader_test_secret"
    secret.write_text("exam")
    tries = [
        "import socket, pathlib",
        "def can(what):",
        "    try: what()",
        "    except Exception: return False",
        "    return True",
        "print('NETWORK', can(lambda: socket.create_connection(('1.1.1.1', 53), 1)))",
        f"print('HOME', can(lambda: open({str(secret)!r}).read()))",
        f"print('SOLUTION', can(lambda: next(pathlib.Path({str(sandbox.PROJECT)!r}, 'kernels_ref').glob('*/*'))))",
        f"print('PROJECT', can(lambda: open({str(sandbox.PROJECT / 'grader' / 'x.py')!r}, 'w')))",
        f"print('TMP', can(lambda: open({str(tmp_path / 'scaling.py')!r}, 'a').write('x')))",
        "print('OWN', can(lambda: open('mine', 'w').write('x')))",
        f"print('BUILDS', can(lambda: open({str(simt.cache_dir() / 'runtime' / 'x')!r}, 'w')))",  # which the judge loads, and all others
        "return x * self.scale",
    ]
    try:
        printed = judged(forward(*tries)).output
    finally:
        secret.unlink()
    said = dict(line.split() for line in printed.splitlines() if line[:1].isupper() and len(line.split()) == 2)
    assert said == dict(NETWORK="False", HOME="False", SOLUTION="False", PROJECT="False", TMP="False", OWN="True", BUILDS="False")


@pytest.mark.gpu
def test_on_a_gpu_a_right_submission_is_timed_beside_eager(tmp_path, problem):  # noqa: F811
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    verdict = grade(path, problem, device="cuda", seed=1)
    assert verdict.outcome is Outcome.passed
    names = [measurement.name for measurement in verdict.stage("fast").measurements]
    assert {"this submission", "eager", "speed-up over eager"} <= set(names)


@pytest.mark.gpu
def test_on_a_gpu_an_input_that_was_written_to_is_seen(tmp_path, problem):  # noqa: F811
    path = tmp_path / "scaling.py"
    path.write_text(forward("y = x * self.scale", "x.zero_()", "return y"))
    assert grade(path, problem, device="cuda", seed=1).reason is Reason.input_modified
