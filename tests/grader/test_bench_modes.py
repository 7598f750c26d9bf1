"""Does `grader bench` time forward and backward, and sizes from small to large, as it times forward?"""

import dataclasses
import functools
import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch.utils.flop_counter import FlopCounterMode

from grader import bench, cli, pictures
from grader import problem as problems
from grader.bench import backward, children, growth, models, ncu, runs, sweep, work
from grader.bench.child import Job, Order, _turn, child
from grader.bench.children import Measured
from tests.grader.scaffold import HEAD, RIGHT, problem  # noqa: F401

FUNCTION = '''
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, gy):
        x, scale = ctx.saved_tensors
        return gy * scale, (gy * x).sum(0){}
'''
OWN = HEAD + "        return Scaled.apply(x, self.scale)\n" + FUNCTION.format("")
WRONG = HEAD + "        return Scaled.apply(x, self.scale)\n" + FUNCTION.format(" * 1.001")
DETACHED = HEAD + "        return (x * self.scale).detach()\n"
DIES = HEAD + "        raise SystemExit\n"
DIES_AT_8 = HEAD + "        return x * self.scale if len(x) != 8 else sys.exit()\n"
FULL_AT_8 = HEAD + "        if len(x) == 8:\n            raise torch.OutOfMemoryError('CUDA out of memory')\n        return x * self.scale\n"
PLANES = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x):
        return torch.sigmoid(self.conv(x))

batch_size = 2
height = 8
width = 8

def get_inputs():
    return [torch.rand(batch_size, 2, height, width)]

def get_init_inputs():
    return []
'''


@pytest.fixture
def write(tmp_path):
    """Writes submissions, one a name, and gives their paths."""

    def made(**sources: str) -> list[Path]:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        return [tmp_path / f"{name}.py" for name in sources]

    return made


def order_of(path, files=(), task="sweep", seconds=100.0, spared=("compile",)):
    return Order(str(path), {}, "cpu", [str(f) for f in files], list(spared), seconds, 0, task=task)


def run(*arguments: object):
    return CliRunner().invoke(cli.cli, ["bench", *map(str, arguments), "--device", "cpu"])


class Here:
    """children.Lines, but the child runs in this process; what would end it raises SystemExit. started: with what each began."""

    started: list[Order] = []

    def __init__(self, order, tick):
        self.order, self.process, self.code = order, self, 0
        self.started.append(dataclasses.replace(order, skip=list(order.skip), done=list(order.done)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __iter__(self):
        said = []
        try:
            child(self.order, lambda line: said.append(json.dumps(line)))
        except SystemExit:
            self.code = -11
        yield from map(json.loads, said)

    def wait(self):
        return self.code

    def last_words(self):
        return "its process ended (ended by SIGSEGV)"


@pytest.fixture
def here(monkeypatch):
    """Children in this process; they that were started."""
    monkeypatch.setattr(children, "Lines", Here)
    monkeypatch.setattr(Here, "started", [])
    return Here.started


# --- forward and backward --------------------------------------------------------------------------------------------


def prepared(path, entry, task_seed=3):
    """A row's Both, the instance, its input and the gradient that it starts from."""
    made = problems.read(path)
    instance = made.instantiate(made.full(), task_seed, "cpu")
    inputs = list(instance.inputs)
    upstream = backward.upstream_of(made, instance, task_seed)
    both = backward.Both(entry, made, instance, models.Layouts(inputs), models.Layouts(upstream))
    return both, instance, inputs, upstream


@pytest.mark.parametrize("largest", [1, 1 << 27])
def test_the_right_gradients_are_those_of_the_formula(problem, monkeypatch, largest):  # noqa: F811
    """Of y = x * scale: is x's gradient up * scale in each image, and scale's the sum of up * x, one image at a time or all?"""
    monkeypatch.setattr(backward, "LARGEST", largest)
    _, instance, (x,), (up,) = prepared(problem, bench.Entry("eager", "eager"))
    expected = backward.expected_of(instance, [x], [up])
    scale = instance.model.scale.double()
    assert list(expected) == ["y", "x", "scale"] and list(expected["x"]) == list(expected["y"]) == [0, 2, 3]
    for image in (0, 2, 3):
        torch.testing.assert_close(expected["x"][image][0], up[image].double() * scale)
        torch.testing.assert_close(expected["y"][image][0], x[image].double() * scale)
    torch.testing.assert_close(expected["scale"][-1], (up.double() * x.double()).sum(0))
    assert instance.inputs[0] is x


def test_gradients_of_two_calls_are_not_added_up(problem, write):  # noqa: F811
    """Are gradients those of one call after several, for eager and for a file, and do the inputs stay without one?"""
    (own,) = write(own=OWN)
    for entry in (bench.Entry("eager", "eager"), bench.Entry("own", "submission", file=str(own))):
        both, instance, inputs, upstream = prepared(problem, entry)
        expected = backward.expected_of(instance, inputs, upstream)
        for _ in range(3):
            both.drop()
            out = both()
        errors = backward.errors_of(both, out, expected)
        assert list(errors) == ["y", "x", "scale"] and max(errors.values()) < 1e-6
        assert inputs[0].grad is None and not inputs[0].requires_grad
        both()  # without drop(): twice the gradient, which shows that drop() did something
        assert backward.errors_of(both, out, expected)["scale"] == pytest.approx(1.0, rel=1e-3)


PARTLY = HEAD + "        return x * self.scale.detach()\n"


def test_a_gradient_that_is_missing_is_a_failure(problem, write):  # noqa: F811
    """Of a model whose result reaches x and not the weight: is that said, and not taken for a model without a backward?"""
    (partly,) = write(partly=PARTLY)
    both, instance, inputs, upstream = prepared(problem, bench.Entry("partly", "submission", file=str(partly)))
    with pytest.raises(ValueError, match="scale gets no gradient"):
        backward.errors_of(both, both(), backward.expected_of(instance, inputs, upstream))


def test_both_layouts_have_the_same_gradients(write):
    """With weights and inputs in channels_last, is every error as small, and the gradient that comes in laid out likewise?"""
    (path,) = write(planes=PLANES)
    both, instance, inputs, upstream = prepared(path, bench.Entry("eager", "eager", channels_last=True))
    expected = backward.expected_of(instance, inputs, upstream)
    assert max(backward.errors_of(both, both(), expected).values()) < 1e-5
    assert both.upstream[0].is_contiguous(memory_format=torch.channels_last) and upstream[0].is_contiguous()


def test_gradients_are_held_to_their_class():
    """Is the largest error held to twice eager's, can a gradient in TF32 not hide behind an ill-conditioned one, and are the
    last digits no fault?"""
    eager = {"y": 2e-7, "x": 2e-6, "w": 1e-3}
    assert bench.within({"y": 1e-6, "x": 1e-5, "w": 2e-3}, eager, 2.0) is True
    assert bench.within({"y": 2e-7, "x": 2e-6, "w": 2.1e-3}, eager, 2.0) is False
    assert bench.within({"y": 2e-7, "x": 3e-4, "w": 1e-3}, eager, 2.0) is False
    assert bench.within({"y": 5e-8}, {"y": 0.0}, 2.0) is True and bench.within({"y": 3e-7}, {"y": 1e-7}, 2.0) is False
    assert bench.within({"y": 1e-7, "x": None, "w": 0.0}, eager, 2.0) is None and bench.within({}, eager, 2.0) is None


def test_work_there_and_back(write):
    """Are a convolution's operations those that torch counts of a forward and backward, and the bytes twice forward's?"""
    (path,) = write(planes=PLANES)
    made = problems.read(path)
    instance = made.instantiate(made.full(), 0, "cpu")
    with FlopCounterMode(display=False) as flops:
        instance.model(instance.inputs[0].requires_grad_()).sum().backward()
    assert bench.work_of(made, backward=True).products == flops.get_total_flops() > 0
    assert bench.work_of(made, backward=True).bytes == 2 * bench.work_of(made).bytes


def test_rows_of_backward():
    """Are they backward.py, eager and torch.compile in both layouts and precisions, and is none of the steps there?"""
    made = problems.read(problems.KERNELS_REF / "conv_groupnorm_maxpool" / "model.py")
    found = [e.name for e in bench.entries(made, [], [], bench.work_of(made), backward=True)]
    ours = [n for n in found if not n.startswith(("eager", "torch"))]
    assert ours[0] == "backward" and all("backward" in n for n in ours) and len(found) - len(ours) == 12
    assert not [n for _, f in bench.ladder_of(made.path.parent) for n in [f.name] if "backward" in n]


def test_a_run_of_backward_stands_beside_the_forward_rows(problem, write, tmp_path, here):  # noqa: F811
    """Are right and wrong gradients told apart, one without a backward left out, one that kills its process a row that
    says so, and do the forward rows stay?"""
    out = tmp_path / "bench.json"
    before = {"rows": [{"name": "old", "kind": "eager", "precision": "fp32", "error": None, "in_class": None, "failed": "-"}], "best": {}}
    out.write_text(json.dumps({"command": "bench before", "interrupted": True, "problems": {"scaling": before}}))
    files = write(own=OWN, wrong=WRONG, bare=DETACHED, dies=DIES)
    result = run(*files, "--problem", problem, "--backward", "--add", "--out", out, "--without", "compile", "--seconds", "0.2")
    assert result.exit_code == cli.FAILED, result.output
    made = json.loads(out.read_text())["problems"]["scaling"]
    assert made["rows"] == before["rows"] and made["command"] == "bench before" and made["interrupted"] is True
    rows = {row["name"]: row for row in made["backward"]["rows"]}
    assert list(rows) == ["submission own", "submission wrong", "submission dies", "eager"]
    assert rows["submission own"]["in_class"] is True and rows["submission wrong"]["in_class"] is False
    assert rows["submission wrong"]["errors"]["scale"] == pytest.approx(1e-3, rel=0.1) and rows["eager"]["ms"] > 0
    assert "SIGSEGV" in rows["submission dies"]["failed"]
    assert "no gradient" in made["backward"]["without_backward"]["submission bare"]
    assert made["backward"]["best"]["fp32"]["ours"] == "submission own"
    assert "gradients of every input and weight" in result.stdout and "submission bare" in result.stdout


def test_what_is_timed_on_a_gpu(monkeypatch):
    """Is the L2 flushed, then the GPU kept waiting while the call is launched, and does nothing else stand between the events?"""
    did = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            did.append("event")

        def elapsed_time(self, stop):
            return 3.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: did.append("wait" if cycles > 1e6 else "hardly"), raising=False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: did.append("end"))
    job = Job(lambda: did.append("call"), dict, lambda: did.append("drop"))
    take = functools.partial(_turn, bench.Entry("eager", "eager"), "eager", job, bench.Events(lambda: did.append("flush")), lambda line: None)
    assert take() == pytest.approx(3e-3)
    assert did == ["drop", "flush", "wait", "event", "call", "event", "end", "drop"]


# --- a sweep ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Three sizes and one round each."""
    monkeypatch.setattr(sweep, "BATCHES", (1, 8))
    monkeypatch.setattr(sweep, "SIDES", (4, 16))
    monkeypatch.setattr(sweep, "ROUNDS", 0.0)


def swept(order) -> tuple[dict, list[dict]]:
    """A child's part of the data and its lines, in this process."""
    said, found = [], Measured()

    def say(line):
        said.append(line)
        found.hear(json.loads(json.dumps(line)))

    sweep.child(order, say)
    return sweep.told(order.read(), order, found), said


def test_each_size_is_what_it_says(write, few, monkeypatch):
    """Is every row run on inputs of the size's batch and side, and right there? Is torch.compile's at its own batches only?"""
    monkeypatch.setattr(torch, "compile", lambda model, mode, dynamic: model if dynamic is False else None)
    monkeypatch.setattr(sweep, "COMPILED", (1,))
    seen = []
    error_of = models.error_of
    monkeypatch.setattr(models, "error_of", lambda out, expected: seen.append(tuple(out.shape)) or error_of(out, expected))
    (path,) = write(planes=PLANES)
    made, _ = swept(order_of(path, spared=("tf32",)))
    where = [(line["batch"], line["side"]) for line in made["sizes"]]
    assert where == [(1, 8), (2, 4), (2, 8), (2, 16), (8, 8)] and made["own"] == {"batch": 2, "side": 8}
    assert {(b, 4, s - 2, s - 2) for b, s in where} == set(seen)
    names = {key: [row["name"] for row in line["rows"]] for key, line in zip(where, made["sizes"])}
    assert names.pop((8, 8)) == ["eager, fp32"] and set(map(tuple, names.values())) == {("eager, fp32", "torch.compile, fp32")}
    assert all(row["in_class"] and row["ms"] > 0 and row["error"] < 1e-6 for line in made["sizes"] for row in line["rows"])


def test_a_size_that_does_not_fit_says_so(problem, few, monkeypatch):  # noqa: F811
    """Is a size left out whose tensors would fill the memory, and are the others measured?"""
    need = work.need_of(problems.read(problem))
    assert need == 4 * (4 * 6 + 4 * 6)  # x and the result: 4 rows of 6 floats each
    monkeypatch.setattr(sweep, "memory_of", lambda device: 2 * need)
    made, _ = swept(order_of(problem))
    skipped = {line["batch"]: line.get("skipped") for line in made["sizes"]}
    assert skipped[1] is skipped[4] is None and "GB of tensors" in skipped[8] and "rows" not in made["sizes"][2]


def test_memory_that_runs_out_costs_one_row_at_one_size(problem, write, few):  # noqa: F811
    made, _ = swept(order_of(problem, write(full=FULL_AT_8, right=RIGHT)))
    rows = {(line["batch"], row["name"]): row for line in made["sizes"] for row in line["rows"]}
    assert "OutOfMemoryError" in rows[8, "submission full"]["failed"] and "ms" in rows[4, "submission full"]
    assert "ms" in rows[8, "submission right"] and "ms" in rows[8, "eager"]


def test_a_sweep_ends_when_its_time_is_up(problem, few):  # noqa: F811
    made, _ = swept(order_of(problem, seconds=-1.0))
    assert [line["skipped"] for line in made["sizes"]] == ["the time was up"] * 3
    assert growth.sentences("p", made) == ["p: not measured: batch 1, batch 4, batch 8: the time was up."]


def test_a_row_that_dies_at_a_size_is_missing_there_alone(problem, write, tmp_path, few, here):  # noqa: F811
    """Is its row measured at other sizes and the other rows at this one, and is nothing measured twice that was done?"""
    out = tmp_path / "sweep.json"
    result = run(*write(dies=DIES_AT_8), "--problem", problem, "--sweep", "--out", out, "--without", "compile")
    assert result.exit_code == cli.FAILED, result.output
    (made,) = json.loads(out.read_text())["problems"].values()
    rows = {(line["batch"], row["name"]): row for line in made["sizes"] for row in line["rows"]}
    assert [line["batch"] for line in made["sizes"]] == [1, 4, 8]
    assert "SIGSEGV" in rows.pop((8, "submission dies"))["failed"] and all("ms" in row for row in rows.values())
    first, second = here
    assert first.done == first.skip == [] and second.done == ["batch 4", "batch 1"] and second.skip == ["batch 8: submission dies"]
    assert second.seconds < first.seconds and (tmp_path / "sweep" / "scaling.svg").is_file()
    assert "In fp32 eager is faster" in result.stdout


@pytest.mark.parametrize("task", ["backward", "sweep"])
def test_stopped_a_run_keeps_what_it_has(problem, write, tmp_path, monkeypatch, task):  # noqa: F811
    """Ctrl-C after a few rounds: are they in the data file, what was not reached named, and the exit status 130?"""
    lines = {
        "backward": [{"row": "eager", "errors": {"y": 1e-8, "x": 1e-8, "scale": 1e-8}}, {"round": {"eager": 1e-3}}],
        "sweep": [{"row": "batch 4: eager", "error": 1e-8}, {"round": {"batch 4: eager": 1e-3}}],
    }[task]

    def stopped(order, found, say, tick):
        for line in [{"work": {"bytes": 1, "products": 0, "others": 1, "planes": False}, "roof": {}}, *lines]:
            found.hear(line)
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "measure", stopped)
    out = tmp_path / "made.json"
    (own,) = write(own=OWN)
    result = run(own, "--problem", problem, f"--{task}", "--out", out, "--without", "compile")
    assert result.exit_code == cli.INTERRUPTED, result.output
    data = json.loads(out.read_text())
    made = data["problems"]["scaling"] if task == "sweep" else data["problems"]["scaling"]["backward"]
    assert data["interrupted"] and made["interrupted"]
    if task == "sweep":
        there = {line["batch"]: line for line in made["sizes"]}
        assert {row["name"]: row.get("ms") for row in there[4]["rows"]}["eager"] == pytest.approx(1.0)
        assert there[8]["skipped"] == "it was not reached: the run ended before"
    else:
        rows = {row["name"]: row for row in made["rows"]}
        assert rows["eager"]["ms"] == pytest.approx(1.0) and "run ended before" in rows["submission own"]["failed"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["groupnorm", "--backward", "--sweep"], "give one of them"), (["mend_layernorm", "--backward"], "no backward.py"),
        (["matmul", "--sweep"], "batch_size"),
    ],
)  # fmt: skip
def test_wrong_usage_of_the_modes_is_2(arguments, said, tmp_path):
    result = run(*arguments, "--out", tmp_path / "x.json")
    assert result.exit_code == cli.USAGE and said in result.stderr and not list(tmp_path.iterdir())


def test_a_sweep_is_not_added_to_times_nor_times_to_a_sweep(problem, tmp_path):  # noqa: F811
    out = tmp_path / "x.json"
    for text, more in (('{"problems": {"p": {"sizes": []}}}', []), ('{"problems": {"p": {"rows": []}}}', ["--sweep"])):
        out.write_text(text)
        result = run("--problem", problem, *more, "--add", "--out", out)
        assert result.exit_code == cli.CANNOT and "no data file" in result.stderr and out.read_text() == text


# --- what a sweep shows ----------------------------------------------------------------------------------------------


def part_of(times: dict[str, dict[int, float]], spread=0.01, own=4) -> dict:
    """A sweep's data by batch: milliseconds of each row, whose names begin with their kind."""
    kinds = {"limit": "beside", "torch": "compile", "eager": "eager", "step": "step"}
    made = []
    for batch in sorted({b for t in times.values() for b in t}):
        rows = [
            {"name": n, "kind": kinds[n.split()[0]], "precision": "fp32", "ms": t[batch], "low": t[batch] * (1 - spread),
             "high": t[batch] * (1 + spread), "n": 20, "in_class": True}
            for n, t in times.items() if batch in t
        ]  # fmt: skip
        made.append({"batch": batch, "side": None, "rows": rows})
    return {"own": {"batch": own, "side": None}, "sizes": made}


def test_where_torch_wins_is_said():
    """Is it said where the intervals do not meet, with how many times as fast, and not where they do?"""
    even = {1: 1.0, 2: 1.0, 4: 2.0}
    said = growth.sentences("p", part_of({"limit": even, "torch a": {1: 0.5, 2: 0.995, 4: 3.0}, "eager": {1: 9.0}}))
    assert said == [
        "p: In fp32 torch.compile is faster than the fastest of ours at batch 1 (2.00 times as fast). In fp32 eager is faster at no size. No cliff."
    ]


def test_cliffs():
    """Is a step of more than 1.5 times a unit found, a smaller size that takes longer, but no overhead, no noise, no step of others?"""

    def of(times, spread=0.01, name="limit"):
        said = growth.sentences("p", part_of({name: times}, spread))
        return said[0].partition("liff")[2] if said else ""

    assert of({1: 1.0, 2: 1.1, 4: 2.0, 8: 4.0}) == "."  # first the launch, then the work
    assert "from 4 to 8 a pixel becomes 1.6 times as dear" in of({1: 1.0, 2: 2.0, 4: 4.0, 8: 12.8})
    assert "2 takes 1.5 times as long as 4" in of({1: 1.0, 2: 3.0, 4: 2.0})
    assert of({4: 4.0, 8: 12.8}, spread=0.05) == "."  # not surely
    few = part_of({"limit": {4: 4.0, 8: 99.0}})
    few["sizes"][1]["rows"][0]["n"] = 5
    assert growth.sentences("p", few) == ["p: No cliff."]
    assert of({4: 4.0, 8: 16.0}, name="step 4") == "."


def test_a_row_out_of_its_class_is_no_curve():
    part = part_of({"limit": {1: 1.0, 4: 2.0}, "eager": {1: 3.0}})
    part["sizes"][0]["rows"][0]["in_class"] = False
    (curves,) = growth.curves(part).values()
    assert {c.name: [p.size for p in c.points] for c in curves} == {"limit": [4], "eager": [1]}


def test_the_picture_holds_what_was_measured():
    """Are the lines' points seconds a pixel, an axis a panel, and the words those of the sentences?"""
    part = part_of({"limit": {1: 1.0, 2: 2.0, 4: 8.0}, "eager": {1: 2.0, 4: 9.0}})
    for line in part["sizes"]:
        line["side"] = part["own"]["side"] = 8
    picture = growth.picture("p", part)
    (limit,) = [line for ax in picture.figure.axes for line in ax.lines if line.get_gid() == "sweep-batch-0"]
    assert list(limit.get_xdata()) == [1, 2, 4] and list(limit.get_ydata()) == pytest.approx([1e-3 / 64, 1e-3 / 64, 2e-3 / 64])
    assert len(picture.figure.axes) == 2 and "from 2 to 4 a pixel becomes 2.0 times as dear" in picture.alt
    with pytest.raises(ValueError, match="no point"):
        pictures.sweep({}, "p", "")


# --- what ncu is asked for -------------------------------------------------------------------------------------------


def test_the_fastest_of_each_class_is_profiled(problem, monkeypatch):  # noqa: F811
    """Is ncu asked for eager, the fastest torch.compile, the slowest step and both limits, and for nothing in class-less order?"""
    asked = []
    rows = [("01", "step", "fp32", 9), ("limit", "beside", "fp32", 2), ("limit_tf32", "beside", "tf32", 1), ("eager, fp32", "eager", "fp32", 5)]
    rows += [("torch.compile, fp32", "compile", "fp32", 4), ("torch.compile, tf32", "compile", "tf32", 3)]
    made = {"rows": [{"name": n, "kind": k, "precision": p, "ms": ms, "mode": "default"} for n, k, p, ms in rows]}
    monkeypatch.setattr(ncu.shutil, "which", lambda name: "/usr/bin/ncu")
    monkeypatch.setattr(ncu.subprocess, "run", lambda command, **_: asked.append(json.loads(command[-1])["profile"]) or type("", (), {"stdout": ""}))
    assert "ncu said" in ncu.launches(order_of(problem, task="forward"), made)["failed"]
    assert asked == [["eager, fp32", "torch.compile, tf32", "01", "limit", "limit_tf32"]]
