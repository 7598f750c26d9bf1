"""Does `grader bench` time interleaved rounds, give intervals, and keep its results when it fails or is stopped?"""

import datetime
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from grader.bench import ncu, rows, runs, times, work
from grader.cli import main, statuses
from grader.judging.timing import clocks
from grader.paths import KERNELS_REF
from grader.problems import problem as problems
from tests.grader.scaffold import HEAD, RIGHT, problem  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]
SLEEPS = HEAD + "        time.sleep(0.2)\n        return x * self.scale\n"
DIES = HEAD + "        os.kill(os.getpid(), signal.SIGSEGV)\n"
RAISES = HEAD + "        raise ValueError('no such luck')\n"
WRONG = HEAD + "        return x * self.scale + 0.001\n"
SPARED = ["--without", "compile", "--device", "cpu", "--seconds", "1"]


@pytest.fixture
def files(tmp_path):
    """Writes submissions, one a name, and gives their paths."""

    def write(**sources: str) -> list[Path]:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        return [tmp_path / f"{name}.py" for name in sources]

    return write


def run(*arguments: object):
    return CliRunner().invoke(main.cli, ["bench", *map(str, arguments)])


def rows_of(out: Path) -> dict[str, dict]:
    (made,) = json.loads(out.read_text())["problems"].values()
    return {row["name"]: row for row in made["rows"]}


class World:
    """A clock that only moves when a row runs. spread: of the logarithm of each row's times, which are log-normal."""

    def __init__(self, spread=0.0, seed=0):
        self.time, self.spread, self.random, self.ran = 0.0, spread, random.Random(seed), []

    def row(self, name, seconds):
        def once():
            taken = seconds * math.exp(self.random.gauss(0.0, self.spread))
            self.time += taken
            self.ran.append(name)
            return taken

        return once

    def rounds(self, rows, seconds=1e9):
        samples = {}

        def each(found):
            for name, taken in found.items():
                samples.setdefault(name, []).append(taken)

        times.run_rounds(rows, each, now=lambda: self.time, seconds=seconds, seed=1)
        return samples


# --- times and intervals ---


@pytest.mark.parametrize("n", [6, 20, 21, 50, 200])
def test_the_interval_of_a_median_holds_it_as_often_as_it_says(n):
    """Of many samples of a known, skewed distribution, do about 95 % of the intervals hold its median?"""
    draw = random.Random(n)
    held = 0
    for _ in range(2000):
        middle, low, high = times.compute_median([2.0 * math.exp(draw.gauss(0, 0.3)) for _ in range(n)])
        assert low <= middle <= high
        held += low <= 2.0 <= high
    assert 0.94 <= held / 2000 <= 0.99  # ranks are whole numbers: a little more often than 95 %


def test_the_interval_needs_no_kind_distribution():
    """Do a few runs that took a hundred times as long leave median and interval where they are?"""
    samples = [1.0 + 1e-4 * k for k in range(40)]
    middle, low, high = times.compute_median([*samples[:37], 100.0, 100.0, 100.0])
    assert middle == pytest.approx(statistics.median(samples), rel=1e-3) and high < 1.005 and low > 0.999


def test_without_noise_each_row_runs_once_a_round_until_the_fewest():
    """Are rows interleaved, in another order each round, and no longer than needed?"""
    world = World()
    samples = world.rounds({"a": world.row("a", 1e-3), "b": world.row("b", 2e-3), "c": world.row("c", 3e-3)})
    assert {name: len(s) for name, s in samples.items()} == dict.fromkeys("abc", times.FEWEST)
    orders = [tuple(world.ran[k : k + 3]) for k in range(0, len(world.ran), 3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders) and len(set(orders)) > 3


def test_noise_takes_more_rounds_and_a_slow_row_does_not_take_part():
    """Do rounds go on until the medians are known, while a row a hundred times as slow leaves after the fewest?"""
    world = World(spread=0.03)
    samples = world.rounds({"fast": world.row("fast", 1e-3), "slow": world.row("slow", 0.1)})
    assert len(samples["slow"]) == times.FEWEST < len(samples["fast"]) <= times.MOST
    assert times.is_narrow(samples["fast"])
    middle, low, high = times.compute_median(samples["fast"])
    assert low <= 1e-3 * 1.01 and high >= 1e-3 * 0.99 and (high - low) / 2 <= times.NARROW * middle


def test_rounds_end_when_time_is_up_but_not_before_the_first():
    world = World(spread=0.5)
    samples = world.rounds({"a": world.row("a", 1.0)}, seconds=0.0)
    assert len(samples["a"]) == 1 and not times.is_narrow(samples["a"])


# --- rows ---


def names_of(name, *spared):
    made = problems.read(KERNELS_REF / name / "model.py")
    return [e.name for e in rows.make_entries(made, [], spared, work.count_work(made))]


def test_rows_of_a_problem_with_a_convolution():
    """Are all steps there in order, and torch in both precisions, both layouts and both modes?"""
    made = names_of("conv_groupnorm_maxpool")
    assert made[0] == "01_one_operator_each" and "solution" in made and "backward" not in made
    torchs = [n for n in made if n.startswith(("eager", "torch.compile"))]
    assert len(torchs) == 12 and "torch.compile max-autotune, channels_last, tf32" in torchs
    assert len(set(made)) == len(made)


def test_rows_where_tf32_makes_no_difference():
    assert [n for n in names_of("groupnorm") if "tf32" in n or "fp32" in n] == []


def test_rows_are_left_out():
    left = names_of("conv_groupnorm_maxpool", "step", "max-autotune", "channels_last", "tf32")
    assert [n for n in left if n.startswith(("0", "eager", "torch"))] == ["eager, fp32", "torch.compile, fp32"]


def test_the_work_is_counted_by_shapes():
    """Are bytes and operations those of the issue: 15.0 GB of groupnorm, 18.7 GFLOP of the convolution?"""
    norm = work.count_work(problems.read(KERNELS_REF / "groupnorm" / "model.py"))
    assert norm.bytes == 8 * 112 * 64 * 512 * 512 + 8 * 64
    assert norm.products == 0 and norm.others == 112 * 64 * 512 * 512
    conv = work.count_work(problems.read(KERNELS_REF / "conv_groupnorm_logsumexp" / "model.py"))
    assert conv.products == 2 * 128 * 64 * 126 * 126 * 72 and conv.planes


def test_the_roofline_bound_is_the_highest_of_the_three():
    roof = {"bytes_a_second": 1e12, "fp32_a_second": 1e13, "tf32_a_second": 1e14, "fp16_a_second": 2e14}
    assert work.Work(10**9, 0, 10**6, False).compute_bound(roof, "fp32") == pytest.approx(1e-3)
    assert work.Work(10, 2 * 10**12, 0, False).compute_bound(roof, "tf32") == pytest.approx(1e-2)
    assert work.Work(10, 2 * 10**12, 0, False).compute_bound(roof, "fp32") == pytest.approx(3e-2)
    assert work.Work(10, 0, 0, False).compute_bound({}, "fp32") is None


def test_a_file_says_its_precision(files, problem):  # noqa: F811
    a, b = files(a=f'PRECISION = "tf32"\n{RIGHT}', b=RIGHT)
    made = problems.read(problem)
    assert (rows.read_precision(a, made), rows.read_precision(b, made)) == ("tf32", "fp32")


# --- whole runs, on the CPU ---


@pytest.mark.slow
def test_a_run_measures_judges_and_writes(files, problem, tmp_path):  # noqa: F811
    """Do the right rows have times and errors, and the wrong one the word that it is not in its class?"""
    out = tmp_path / "made" / "bench.json"
    result = run(*files(right=RIGHT, wrong=WRONG), "--problem", problem, "--out", out, *SPARED)
    assert result.exit_code == 0, result.output
    rows = rows_of(out)
    assert list(rows) == ["submission right", "submission wrong", "eager"]
    assert all(row["low"] <= row["ms"] <= row["high"] and len(row["samples"]) == row["n"] for row in rows.values())
    assert rows["submission right"]["in_class"] is True and rows["submission wrong"]["in_class"] is False
    data = json.loads(out.read_text())
    assert data["machine"]["date"] and data["machine"]["torch"] == torch.__version__ and not data["interrupted"]
    (made,) = data["problems"].values()
    assert made["best"]["fp32"]["ours"] == "submission right" and made["best"]["fp32"]["baseline"] == "eager"
    assert "submission right" in result.stdout and "95 %" in result.stdout
    assert [p.name for p in (tmp_path / "made" / "bench").iterdir()] == ["scaling_fp32_ladder.svg"]


@pytest.mark.slow
def test_what_a_data_file_has_can_stay(files, problem, tmp_path):  # noqa: F811
    """Does --add keep other problems, and refuse a file that is none of ours?"""
    out = tmp_path / "bench.json"
    other = {"rows": [], "best": {}}
    out.write_text(json.dumps({"problems": {"other": other}}))
    assert run(*files(right=RIGHT), "--problem", problem, "--out", out, "--add", *SPARED).exit_code == 0
    made = json.loads(out.read_text())["problems"]
    assert made["other"] == other and made["scaling"]["machine"]["torch"] == torch.__version__
    out.write_text("[]")
    result = run("--problem", problem, "--out", out, "--add", *SPARED)
    assert result.exit_code == statuses.CANNOT and "no data file" in result.stderr and out.read_text() == "[]"


@pytest.mark.slow
def test_a_row_that_fails_says_so_and_the_others_are_measured(files, problem, tmp_path):  # noqa: F811
    """One raises, one kills its process, one is no Python: are the others there, and is the exit status 1?"""
    out = tmp_path / "bench.json"
    made = files(raises=RAISES, dies=DIES, broken="def f(:", right=RIGHT)
    result = run(*made, "--problem", problem, "--out", out, *SPARED)
    rows = rows_of(out)
    assert result.exit_code == statuses.FAILED
    assert rows["submission raises"]["failed"] == "ValueError: no such luck"
    assert "SIGSEGV" in rows["submission dies"]["failed"] and "SyntaxError" in rows["submission broken"]["failed"]
    assert "ms" in rows["submission right"] and "ms" in rows["eager"]


@pytest.mark.slow
def test_a_baseline_that_fails_is_a_row(problem, tmp_path, monkeypatch):  # noqa: F811
    """torch.compile without a compiler: does its row say why, and is the run a success?"""
    monkeypatch.setenv("CXX", "/nowhere/g++")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    out = tmp_path / "bench.json"
    spared = ["--without", "max-autotune", "--device", "cpu", "--seconds", "1"]
    result = run("--problem", problem, "--out", out, *spared)
    rows = rows_of(out)
    assert result.exit_code == 0, result.output
    assert "failed" in rows["torch.compile"] and "ms" not in rows["torch.compile"] and "ms" in rows["eager"]
    assert rows["torch.compile"]["failed"][:20] in result.stdout


@pytest.mark.slow
def test_stopped_it_keeps_what_it_has(files, problem, tmp_path):  # noqa: F811
    """Ctrl-C while rows are timed: are the rounds until then in the data file, and is the exit status 130?"""
    (slow,) = files(slow=SLEEPS)
    out = tmp_path / "bench.json"
    command = [sys.executable, "-u", "-m", "grader", "bench", slow, "--problem", problem, "--out", out]
    command += ["--without", "compile", "--device", "cpu", "--seconds", "600"]
    with subprocess.Popen(list(map(str, command)), cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "eager" in line:  # the last row that is prepared
                break
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait(30) == statuses.INTERRUPTED
    assert json.loads(out.read_text())["interrupted"] is True
    row = rows_of(out)["submission slow"]
    assert 1 <= row["n"] < times.FEWEST and row["ms"] == pytest.approx(200, rel=0.5)


# --- without a GPU, and wrong usage ---


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so_in_a_sentence(tmp_path):
    """Is it one sentence and the documented status 3, and is nothing written?"""
    result = run("groupnorm", "--out", tmp_path / "bench.json")
    assert result.exit_code == statuses.CANNOT
    assert result.stderr.strip() == "grader bench times kernels on a GPU, and this machine has none."
    assert not result.stdout and not list(tmp_path.iterdir())
    assert "no GPU" in CliRunner().invoke(main.cli, ["bench", "--help"]).output


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing"], "neither"),
        (["groupnorm", "--without", "step,x"], "--without x: it is one of step"),
        (["--set", "a"], "NAME=VALUE"),
    ],
)
def test_wrong_usage_is_2(arguments, message, tmp_path):
    result = run(*arguments, "--device", "cpu", "--out", tmp_path / "bench.json")
    assert result.exit_code == statuses.USAGE and message in result.stderr


# --- what NVIDIA's tools say ---


def test_clocks_are_read_with_their_times():
    """Is a line of nvidia-smi placed by its own time, and one that says [N/A] left out?"""
    start = datetime.datetime(2026, 11, 21, 20, 15, 0)
    assert clocks.parse_reading("2026/11/21 20:15:02.500, 1980, 3201, 636.43, 53", start) == [
        2.5,
        1980,
        3201,
        636.43,
        53,
    ]
    assert clocks.parse_reading("2026/11/21 20:15:02.500, [N/A], 3201, 636.43, 53", start) is None
    log = clocks.Clocks()
    assert log.summarize() is None
    log.log = [[0.0, 345, 3201, 80.0, 39], [0.2, 1980, 3201, 600.0, 50], [0.4, 1980, 3201, 610.0, 51]]
    assert log.summarize()["sm_mhz"] == [345, 1980, 1980] and log.summarize(1)["watts"] == [600.0, 605.0, 610.0]


def test_launches_are_cut_at_the_marks():
    """Does each row get its own kernels, by short names, with seconds and bytes?"""
    heads = '"ID","Kernel Name","gpu__time_duration.sum","dram__bytes_read.sum","dram__bytes_write.sum"'
    kernels = [
        "at::cuda::spin_kernel(long)", "void at::native::(anonymous namespace)::RowwiseMoments<float>(long, float*)",
        "scale(float*)", "at::cuda::spin_kernel(long)", "groupnorm_kernel<4>(const float *)",
    ]  # fmt: skip
    lines = [f'"{k}","{name}","2,000","1,000","500"' for k, name in enumerate(kernels)]
    text = "\n".join([heads, '"","","ns","byte","byte"', *lines])
    found = ncu.parse_launches(f"==PROF== noise\n{text}", ["eager", "mine"])
    assert [launch["kernel"] for launch in found["eager"]] == ["RowwiseMoments", "scale"]
    assert found["mine"] == [{"kernel": "groupnorm_kernel", "seconds": pytest.approx(2e-6), "bytes": 1500.0}]
    with pytest.raises(ValueError, match="2 of 1"):
        ncu.parse_launches(text, ["eager"])
    with pytest.raises(ValueError, match="nothing"):
        ncu.parse_launches("", ["eager"])


@pytest.mark.slow
def test_make_bench_without_a_gpu_does_what_it_did():
    """Does make still run the figures of this machine where there is no GPU?"""
    text = (ROOT / "Makefile").read_text()
    rule = text[text.index("\nbench:") :].split("\n\n")[0]
    assert "grader bench --out benchmarks/data/bench.json" in rule and "else python benchmarks/timing/cpu.py" in rule
    if not torch.cuda.is_available():
        code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
        assert code in rule and subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 1


def test_only_what_is_timed_is_compiled(files):
    """Are the files of rows that were left out not compiled, and those of submissions in any case?"""
    (own,) = files(own=SLEEPS)
    ((scan, _),) = runs.choose(["scan"], None, {})

    def compiled(*omitted: str) -> set[str]:
        options = runs.Options([(scan, [own])], omitted=omitted)
        return {Path(file).name for file in runs._list_sources(options)}

    assert {"01_whole_vector.py", "solution.py", "fastest.py", "own.py"} <= compiled()
    assert compiled("step", "reference") == {"fastest.py", "own.py"}
    assert "anchors.py" not in compiled()
