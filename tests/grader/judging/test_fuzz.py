"""Does a sample of benchmarks/validate/fuzz.py find nothing wrong, and would it find something?"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.paths import ROOT
from benchmarks.validate import fuzz, odd_values, replays
from grader.judging import session
from grader.verdict import Outcome
from grader.worker import protocol, sandbox
from grader.worker.channel import Channel, ChannelError
from grader.worker.worker import Worker
from tests.grader.scaffold import PROBLEM, RIGHT, forward
from tests.slowness import slowness


def start_in_thread(*_: object, **__: object) -> sandbox.Process:
    """A worker in a thread of this process: it serves submissions without a kernel, which need no sandbox."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with contextlib.suppress(ChannelError):
            Worker(Channel(theirs), gpu=False).serve()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def kill() -> None:
        ours.close()
        thread.join(5)
        theirs.close()

    made: Any = SimpleNamespace(sock=ours, alive=thread.is_alive, kill=kill, description="none", work=Path("none"))
    made.folders, made.monitor = [], None
    made.log, made.how_it_ended = SimpleNamespace(text=lambda: ""), lambda: (None, None)
    return cast(sandbox.Process, made)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> list[replays.Recording]:
    """Gradings of a right and of a wrong submission."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "scaling.py").write_text(PROBLEM)
    made = []
    for name, source in (("right", RIGHT), ("wrong", forward("return x * self.scale + 1"))):
        (folder / f"{name}.py").write_text(source)
        made.append(replays.record(folder / f"{name}.py", folder / "scaling.py", 1, start_in_thread))
    assert [one.outcome for one in made] == [Outcome.passed, Outcome.failed]
    return made


@pytest.mark.slow
def test_mutated_messages_do_no_harm(recordings):
    counts = fuzz.Counts(slowness())
    fuzz.fuzz_messages(recordings, 150, 1, counts)
    assert not counts.wrong, "\n".join(counts.wrong)
    assert sum(counts.seen.values()) == 150 and counts.seen["failed crash"] < 120


def test_a_judge_that_raises_and_one_that_takes_any_value_are_noticed(recordings, monkeypatch):
    """Would the fuzzing report an exception and a wrong pass?"""

    def fail(*_: object) -> None:
        raise ValueError("planted")

    counts = fuzz.Counts(slowness())
    monkeypatch.setattr("grader.judging.findings.of_failure", fail)
    fuzz.fuzz_messages(recordings, 40, 2, counts)
    assert any("grader_error" in one for one in counts.wrong)
    monkeypatch.undo()
    monkeypatch.setattr(session.tolerance, "compare", lambda *_: None)
    counts, right = fuzz.Counts(slowness()), recordings[0]
    outputs = [n for n, one in enumerate(right.messages) if right.counted[n] and fuzz._results(_decode(one).reply)]
    result = fuzz._results(_decode(right.messages[outputs[0]]).reply)[0]
    assert result.data
    flipped = right.messages[outputs[0]].replace(result.data, bytes(len(result.data)))
    script = [(_decode(one).number, odd_values.frame(one)) for one in right.messages]
    script[outputs[0]] = (script[outputs[0]][0], odd_values.frame(flipped))
    with replays.fast_judge():
        verdict = replays.replay(right, cast(Any, script), random.Random(0))
    fuzz._judge(right, cast(Any, script), verdict, "it", counts)
    assert verdict.outcome is not Outcome.passed or "passed with other values" in counts.wrong[0]


def _decode(message: bytes) -> protocol.Answer:
    import msgspec

    return msgspec.msgpack.decode(message, type=protocol.Answer)


def test_mutated_submissions_do_no_harm():
    counts = fuzz.Counts(slowness())
    fuzz.fuzz_submissions(fuzz.read_submissions(), 60, 0, 1, counts)
    assert not counts.wrong, "\n".join(counts.wrong)
    assert counts.seen["contract: kept"] > 10


@pytest.mark.parametrize("part", ["a", "f(", "<<<", "f(a ", "* ", "k<<<1,1>>>("])
def test_a_line_of_a_hundred_thousand_characters_costs_a_report_little(part, tmp_path):
    text = f'{RIGHT}\nCUDA = r"""__global__ void f(float* y) {{\n{part * (100_000 // len(part))}\n}}"""\n'
    source, counts = fuzz.contract.Source(tmp_path / "it.py", text, ""), fuzz.Counts(slowness())
    for seed in range(40):
        verdict = fuzz._make_verdict(random.Random(seed), source.path, "groupnorm", source)
        fuzz.report(verdict, text, "it", counts)
    assert not [one for one in counts.wrong if "raised" in one] and counts.longest["reports"] < 5 * slowness()


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_more_mutations_do_no_harm_and_leave_nothing_running():
    counts, before = fuzz.Counts(slowness()), fuzz.count_resources()
    recorded = [replays.record(ROOT / path, None, fuzz.SEED) for path, name in fuzz.RECORDED if name is None]
    fuzz.fuzz_messages(recorded, 200, 3, counts)
    fuzz.fuzz_submissions(fuzz.read_submissions(), 150, 3, 3, counts)
    after = fuzz.count_resources()
    assert not counts.wrong, "\n".join(counts.wrong)
    assert (after["processes"], after["mounts"]) == (before["processes"], before["mounts"])
    assert after["threads"] <= before["threads"] and after["descriptors"] <= before["descriptors"] + 10
