"""Does a hostile submission end in the right verdict, and does nothing of it stay behind?"""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import simt
from grader.judging import trial
from grader.verdict import Outcome, Reason, Status
from grader.worker import protocol, sandbox
from grader.worker.client import Client
from grader.worker.levels import Level, Probe
from grader.worker.protocol import Channel
from tests.grader.judging.submissions import OWN
from tests.grader.scaffold import RIGHT, forward, line_of
from tests.grader.worker.attacked import find_trouble

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


@pytest.mark.slow
@pytest.mark.parametrize("lines, said", DEATHS.values(), ids=DEATHS.keys())
def test_a_worker_that_dies_is_a_crash_and_says_how(judged, lines, said):
    source = forward(*lines)
    verdict = judged(source)
    assert verdict.reason is Reason.crash and said in verdict.first_problem.message
    if "string_at" in source:
        assert verdict.first_problem.evidence[0].line == line_of(source, "string_at")
    assert [case.status for case in verdict.stage("correct").cases] == [Status.failed, Status.skipped]
    assert verdict.stage("safe").reason is Reason.not_reached


@pytest.mark.slow
def test_a_flood_of_sources_is_refused(judged):
    """Is a message of a build too large for what it says, before many of them are too much for the judge?"""
    lines = [
        "channel, frame = sys.modules['grader.worker.protocol'], sys._getframe()",
        "while type(frame.f_locals.get('self')).__name__ != 'Worker': frame = frame.f_back",
        "frame.f_locals['self'].reply(channel.Building('x'))",
        "frame.f_locals['self'].reply(channel.Built('x', 0.0, {'cuda_sources': 'A' * (5 << 20)}))",
        "return x * self.scale",
    ]
    verdict = judged(forward(*lines))
    assert verdict.reason is Reason.crash and "`str` of length <= 200000" in verdict.first_problem.message


def test_of_many_builds_a_bounded_part_is_kept():
    """Does the judge's memory not grow with the number of builds that a submission makes up?"""
    ours, theirs = socket.socketpair()
    process: Any = SimpleNamespace(sock=ours, alive=lambda: True, folders=[], monitor=None)
    made = Client(process, Path("it.py"), print, 60.0)
    talk = Channel(theirs)

    def flood() -> None:
        number = talk.order().number
        for n in range(100):
            talk.send(protocol.Answer(number, protocol.Building("x")))
            talk.send(
                protocol.Answer(
                    number, protocol.Built("x", 0.0, {f"part {part}": f"{n // 2}" * 30_000 for part in range(50)})
                )
            )
        talk.send(protocol.Answer(number, protocol.Done()))

    with ours, theirs:
        threading.Thread(target=flood, daemon=True).start()
        assert made.ask(protocol.Release(), 30.0) == protocol.Done()
    assert [one["part 0"][:2] for one in made.sources] == [str(n) for n in range(49, 17, -1)]
    assert all(sum(map(len, one.values())) <= 4 * protocol.MAX_SOURCE for one in made.sources)


@pytest.mark.slow
def test_an_endless_loop_in_forward_is_stopped_and_its_line_named(judged):
    source = forward("while True:", "    pass")
    verdict = judged(source)
    assert verdict.reason is Reason.timeout
    assert verdict.first_problem.evidence[0].line in (line_of(source, "while True"), line_of(source, "    pass"))


@pytest.mark.slow
def test_an_endless_loop_in_the_import_is_stopped(judged):
    assert judged("while True: pass\n" + RIGHT).reason is Reason.build_timeout


@pytest.mark.slow
def test_all_steps_together_have_a_limit(judged, monkeypatch):
    """Is a submission stopped that keeps every limit for one step, and is slow in all of them?"""
    monkeypatch.setattr(trial, "MOST_OWN", 3)
    verdict = judged(forward("time.sleep(0.8)", "return x * self.scale"))
    assert verdict.reason is Reason.timeout
    assert f"All steps together took more than {3 * OWN:g} s" in verdict.first_problem.message


@pytest.mark.slow
def test_children_in_sessions_of_their_own_are_ended_and_floods_of_output_kept_short(judged):
    fork = ["if os.fork() == 0:", "    os.setsid()", "    time.sleep(600)"]
    flood = ["print('x' * 5_000_000)", "print('the last word')"]
    verdict = judged(forward(*fork, *flood, "return x * self.scale"))
    assert verdict.outcome is Outcome.passed
    assert "the last word" in verdict.output and len(verdict.output) <= 4000


def test_a_worker_that_dies_before_its_child_is_noticed_at_once(judged):
    verdict = judged(forward("if os.fork() == 0: time.sleep(600)", "os._exit(0)"))
    assert verdict.reason is Reason.crash and verdict.stage("correct").seconds < OWN


@pytest.mark.slow
def test_leaving_during_the_import_is_an_import_error(judged):
    verdict = judged("import sys\nsys.exit(2)\n" + RIGHT)
    assert (verdict.reason, verdict.first_problem.evidence[0].line) == (Reason.import_error, 2)


@pytest.mark.slow
def test_changing_the_workers_own_code_does_not_make_it_right(judged):
    lie = "import sys\nprotocol = sys.modules['__main__'].protocol\nprotocol.raw = lambda tensor: b''\n"
    assert judged(lie + RIGHT).outcome is Outcome.failed


# --- the sandbox and the GPU, where there are any ---


def test_simts_cache_is_where_simt_says():
    assert sandbox.simt_cache() == simt.cache_dir()


def test_in_the_sandbox_there_is_no_network_no_home_and_nothing_to_write_to(judged, tmp_path):
    if sandbox.why_not():
        pytest.skip(sandbox.why_not())
    secret = Path.home() / f".grader_test_secret_{os.getpid()}"
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
        # which the judge loads, and all others
        f"print('BUILDS', can(lambda: open({str(simt.cache_dir() / 'runtime' / 'x')!r}, 'w')))",
        "return x * self.scale",
    ]
    try:
        printed = judged(forward(*tries)).output
    finally:
        secret.unlink()
    said = dict(line.split() for line in printed.splitlines() if line[:1].isupper() and len(line.split()) == 2)
    assert said == {
        "NETWORK": "False",
        "HOME": "False",
        "SOLUTION": "False",
        "PROJECT": "False",
        "TMP": "False",
        "OWN": "True",
        "BUILDS": "False",
    }


SECRET = "only the judge may read this"
READS_ITSELF = "import os\nassert False, os.read(os.open(__file__, os.O_RDONLY | os.O_NONBLOCK), 20)\n" + RIGHT
REPLACED: dict[str, Callable[[Path], object]] = {
    "by a link": lambda path: (path.unlink(), path.symlink_to(path.with_name("secret"))),
    "by a folder's link": lambda path: (path.unlink(), path.symlink_to(path.with_name("folder"))),
    "by a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "by nothing": Path.unlink,
}


@pytest.mark.slow
@pytest.mark.parametrize("level", [Level.bubblewrap, Level.landlock])
@pytest.mark.parametrize("how", REPLACED)
def test_a_file_replaced_after_it_was_read(judged, tmp_path, monkeypatch, level, how):
    """Does a submission whose file is replaced meanwhile fail by its own reason, without what lies there now?"""
    if trouble := find_trouble(level, tmp_path):
        pytest.skip(trouble)
    monkeypatch.setattr(sandbox, "probe", lambda: Probe(level))
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "folder").mkdir()

    def replace_and_start(submission: Path, content: bytes, **options: Any) -> sandbox.Process:
        REPLACED[how](submission)
        return sandbox.start(submission, content, **options)

    verdict = judged(READS_ITSELF, worker=replace_and_start)
    assert verdict.outcome is Outcome.failed and SECRET[:9] not in str(verdict)
    if level is Level.bubblewrap:
        assert verdict.reason is Reason.import_error and "import os" in verdict.first_problem.message
    else:
        assert verdict.reason is Reason.unreadable and "was replaced" in verdict.first_problem.message
