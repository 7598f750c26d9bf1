"""Is a worker that was just being started ended by Ctrl-C, too, where do its caches lie, and what is kept of what it
prints?
"""

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

import simt
from grader.worker import process as processes
from grader.worker import sandbox
from grader.worker.levels import Level, Probe
from simt.toolchain import compilers

FILE = Path(__file__)


@pytest.fixture
def pressed(monkeypatch):
    """Ctrl-C at the worst moment: the process runs, and no object owns it yet."""
    compilers.find_compiler()  # starts a process too, once
    started, popen = [], subprocess.Popen

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(sandbox.subprocess, "Popen", start)
    monkeypatch.setattr(sandbox, "probe", lambda: Probe(Level.none, "none in this test"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield started
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("variable", ["SIMT_CACHE", "XDG_CACHE_HOME"])
@pytest.mark.parametrize(
    "named, meant", [("~/c", "home/c"), ("c", "here/c"), ("../c", "here/../c"), ("", "home/.cache")]
)
def test_what_a_cache_path_means(monkeypatch, tmp_path, variable, named, meant):
    """Do simt, the judge and the worker, which runs elsewhere, mean one folder: with ~ the home's, and a relative one
    from here?
    """
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("SIMT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, named)
    expected = tmp_path / meant if variable == "SIMT_CACHE" and named else tmp_path / meant / "simt"
    assert sandbox.simt_cache() == simt.cache_dir() == expected
    if variable == "XDG_CACHE_HOME":
        assert sandbox.extensions("f" * 64) == tmp_path / meant / "grader" / "extensions" / ("f" * 16)


def test_small_pieces_cost_the_reader_little():
    """A program writes 200,000 lines one by one: does reading them take a small part of its time, and keep the
    beginning and the end?
    """
    reader, writer = os.pipe()
    log = sandbox.Log(reader)
    lines = b"".join(b"line %06d\n" % n for n in range(200_000))
    program = "import os\nfor n in range(200_000): os.write(1, b'line %06d\\n' % n)"
    before = resource.getrusage(resource.RUSAGE_SELF)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], stdout=writer, check=True)
    os.close(writer)
    log.thread.join(20)
    assert not log.thread.is_alive() and log.total == len(lines)
    text = log.text()
    assert text.startswith(lines[: processes.KEEP].decode()) and text.endswith(lines[-processes.KEEP :].decode())
    assert f"[... {len(lines) - 2 * processes.KEEP} bytes left out ...]" in text
    now, then = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    read = now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
    wrote = then.ru_utime + then.ru_stime - used.ru_utime - used.ru_stime
    assert read < 0.3 * wrote, (read, wrote)


@pytest.mark.parametrize("sandboxed", [True, False])
def test_what_a_worker_may_write_to(monkeypatch, tmp_path, sandboxed):
    """In a sandbox: its own builds, and of simt's cache, which the judge and other workers load from, nothing else? And
    does simt find both?
    """
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "simt"))
    given, made = [], sandbox.make_view
    found = Probe(Level.landlock) if sandboxed else Probe(Level.none, "none in this test")
    monkeypatch.setattr(sandbox, "probe", lambda: found)
    monkeypatch.setattr(sandbox, "make_view", lambda *arguments: given.append(arguments) or made(*arguments))
    variables, environment = {}, sandbox.make_environment
    monkeypatch.setattr(
        sandbox, "make_environment", lambda work, extra: variables.update(extra) or environment(work, extra)
    )
    process = sandbox.start(FILE, FILE.read_bytes(), gpu=False, builds=tmp_path / "abc")
    process.kill()
    shared, own = tmp_path / "simt", tmp_path / "simt" / "submissions" / "abc"
    assert variables["TORCH_EXTENSIONS_DIR"] == str(tmp_path / "abc") and variables["CUDA_VISIBLE_DEVICES"] == ""
    if sandboxed:
        assert given == [(FILE, [process.work, tmp_path / "abc", own], shared, False)]
        assert (variables["SIMT_CACHE"], variables["SIMT_CACHE_SHARED"]) == (str(own), str(shared))
    else:
        assert given == [] and variables["SIMT_CACHE"] == str(shared) and "SIMT_CACHE_SHARED" not in variables


def test_ctrl_c_while_a_worker_starts(pressed, tmp_path):
    """Is it put off until the worker can be ended, and then not lost?"""
    with pytest.raises(KeyboardInterrupt):
        sandbox.start(FILE, FILE.read_bytes(), gpu=False, builds=tmp_path)
    assert len(pressed) == 1 and pressed[0].poll() is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (process,) = [one for one in processes._started if one.popen is pressed[0]]
    sandbox.end_all()
    assert pressed[0].poll() == -signal.SIGKILL and not process.work.exists() and process not in processes._started


def test_others_are_left_alone(monkeypatch, tmp_path):
    """Does one thread's interruption leave another thread's worker running?"""
    monkeypatch.setattr(sandbox, "why_not", lambda: "none in this test")
    made, done = [], threading.Event()

    def elsewhere():
        made.append(sandbox.start(FILE, FILE.read_bytes(), gpu=False, builds=tmp_path))
        done.wait()

    thread = threading.Thread(target=elsewhere, daemon=True)
    thread.start()
    while not made:
        thread.join(0.01)
    sandbox.end_all()
    assert made[0].alive()
    made[0].kill()
    done.set()
    thread.join()


def test_a_worker_that_was_not_ended(tmp_path):
    """Does a program that forgets its worker leave neither it nor its folder?"""
    program = f"""
import pathlib
from grader.worker import sandbox
sandbox.why_not = lambda: "none in this test"
process = sandbox.start(pathlib.Path({str(FILE)!r}), b"", gpu=False, builds=pathlib.Path({str(tmp_path)!r}))
print(process.popen.pid, process.work)
"""
    environment = os.environ | {"PYTHONPATH": str(FILE.resolve().parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment, check=True
    )
    number, work = done.stdout.split()
    assert not psutil.pid_exists(int(number)) and not Path(work).exists()
