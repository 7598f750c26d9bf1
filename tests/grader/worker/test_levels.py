"""Does each level of the sandbox stop what it promises to stop, tried by code that runs in a worker?

At level none the same code succeeds: that shows that a test fails if its protection is taken away.
"""

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.worker import sandbox
from grader.worker.levels import Level
from tests.grader.worker.attacked import Attacked, find_processes, find_trouble
from tests.sample import sample

DONE = "'done'"
PROTECTED = [Level.bubblewrap, Level.landlock]
pytestmark = pytest.mark.skipif(os.name != "posix" or platform.system() != "Linux", reason="Linux only")


@pytest.fixture(scope="module", params=list(Level))
def attacked(request, tmp_path_factory):
    """A worker at each level."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        for kind in ("base", "header", "part", "runtime"):  # those of this machine, so that nothing is rebuilt
            (cache / kind).symlink_to(sandbox.simt_cache() / kind)
        patch.setenv("SIMT_CACHE", str(cache))
        made = Attacked(request.param, tmp_path_factory.mktemp("outside").resolve())
        yield made
        made.process.kill()


def check(attacked: Attacked, expression: str, refused: tuple[str, ...], succeeds: bool = True) -> None:
    """Assert that an attack is refused at the levels that protect, and succeeds without one."""
    result = attacked.run(expression)
    if attacked.level in PROTECTED:
        assert result in refused, result
    elif succeeds:
        assert result == DONE, result


HIDDEN = ("ENOENT", "EACCES", "EPERM", "ENOTDIR")


@pytest.mark.parametrize("name", ["neighbour.py", "verdicts.jsonl", "lessons/01.ipynb"])
def test_files_beside_the_submission(attacked, name):
    """Can another submission, a verdict file, or a lesson be read?"""
    file = attacked.folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("secret")
    check(attacked, f"read({str(file)!r})", HIDDEN)


def test_the_submission_itself(attacked):
    """Can the submission read its own file, and not change it?"""
    assert attacked.run(f"read({str(attacked.submission)!r})") == DONE
    if attacked.level in PROTECTED:
        assert attacked.run(f"write({str(attacked.submission)!r})") in ("EROFS", "EACCES")


@pytest.mark.parametrize("place", ["kernels_ref/groupnorm/model.py", "README.md", ".git", "tests/conftest.py"])
def test_the_project(attacked, place):
    """Can reference kernels, tests or the history be read?"""
    path = sandbox.PROJECT / place
    if not path.exists():
        pytest.skip(f"this copy has no {place}")
    check(attacked, f"{'listed' if path.is_dir() else 'read'}({str(path)!r})", HIDDEN)


def test_names_beside_the_submission(attacked):
    """Can the folder of the submissions, the project's or the judge's be listed?"""
    for folder in (attacked.folder, sandbox.PROJECT, sandbox.PROJECT / "tests", Path.home()):
        result = attacked.run(f"listed({str(folder)!r})")
        if attacked.level is Level.landlock:
            assert result in HIDDEN
        elif attacked.level is Level.bubblewrap:  # the folders on the way to what is visible are there
            assert result in (*HIDDEN, DONE, "0")


@pytest.mark.parametrize("place", ["submissions/other/extension/a.so", "extension/a.so", "object/a.o", "source/a.cu"])
def test_other_builds(attacked, place):
    """Can what other submissions built be read from simt's cache?"""
    file = attacked.cache / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("secret")
    check(attacked, f"read({str(file)!r})", HIDDEN)


def test_limits_of_another_process(attacked):
    """Can a process's limits be lowered from outside it, as the judge's would be?"""
    check(attacked, "with_child(limit)", ("EPERM",))


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_programs_that_run_as_their_owner(attacked, mode):
    """Can a program be left behind that runs as the user who grades?"""
    check(attacked, f"give_mode(os.environ['TORCH_EXTENSIONS_DIR'] + '/shell', {mode})", ("EPERM",))


def test_the_home_folder(attacked):
    """Can a file in the user's home be read?"""
    secret = Path.home() / f".grader_test_secret_{os.getpid()}"
    secret.write_text("exam")
    try:
        check(attacked, f"read({str(secret)!r})", HIDDEN)
    finally:
        secret.unlink()


@pytest.mark.parametrize("place", ["/etc/hostname", "/etc/fstab", "/var/log/dpkg.log", "/proc/1/cmdline"])
def test_the_system(attacked, place):
    """Can files be read that no program needs?"""
    if not os.access(place, os.R_OK):
        pytest.skip(f"there is no {place}")
    if place.startswith("/proc") and attacked.level is Level.bubblewrap:
        assert "bwrap" in attacked.run(f"Path({place!r}).read_bytes()")  # the sandbox's own first process
    else:
        check(attacked, f"read({place!r})", HIDDEN)


def test_writing_outside(attacked):
    """Can anything be written but in its own folders?"""
    runtime = attacked.cache / "runtime"
    for folder in (attacked.folder, sandbox.PROJECT / "grader" / "worker", runtime, Path("/usr/lib"), Path("/var/tmp")):
        file = folder / f"grader-test-{os.getpid()}"
        try:
            # in its own /tmp a sandboxed worker may write what it likes
            can = os.access(folder, os.W_OK)
            check(attacked, f"write({str(file)!r})", (*HIDDEN, "EROFS", DONE), succeeds=can)
            assert file.exists() == (attacked.level is Level.none and can)
        finally:
            file.unlink(missing_ok=True)
    assert attacked.run("write('mine')") == DONE


def test_modes_of_files_outside(attacked):
    """Can another user's file be made unreadable?"""
    if attacked.level is Level.landlock and os.geteuid() != 0:
        pytest.skip("Landlock does not restrict modes, and there is no other user to take")
    file = attacked.folder / "mode.py"
    file.write_text("")
    check(attacked, f"os.chmod({str(file)!r}, 0o600) or 'done'", HIDDEN)


def test_path_name_sockets(attacked):
    """Can a socket be reached that a program on this machine listens at, such as a container daemon's?"""
    stream, datagrams = attacked.folder / "stream", attacked.folder / "datagrams"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        server.bind(str(stream))
        server.listen()
        other.bind(str(datagrams))
        check(attacked, f"connect({str(stream)!r})", HIDDEN)
        check(attacked, f"send_datagram({str(datagrams)!r})", HIDDEN)
    for path in (stream, datagrams):
        path.unlink()


def test_the_network(attacked):
    """Can a server on this machine be reached?"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        check(attacked, f"socket.create_connection({address!r}, 2) and 'done'", ("EPERM", "EACCES"))
    check(attacked, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM) and 'done'", ("EPERM",))


def test_pairs_of_sockets_still_work(attacked):
    """Does socketpair(), which reaches nothing outside, still work?"""
    assert attacked.run("[one.close() for one in socket.socketpair()] and 'done'") == DONE


SYSTEM_CALLS = {
    "ptrace": "with_child(trace)",
    "process_vm_readv": "read_memory(os.getpid())",
    "new user namespace": "with_child(lambda _: syscall(272, 97, 0x10000000))",
    "clone with a new user namespace": "syscall(56, 220, 0x10000000 | 17, None, None, None, None) and os._exit(0)",
    "mount": "syscall(165, 40, b'none', b'/tmp', b'tmpfs', 0, None)",
    "open_tree": "syscall(428, 428, -100, b'/', 1)",
    "keyctl": "syscall(250, 219, 0, -3, 0)",
    "add_key": "syscall(248, 217, b'user', b'grader', b'x', ctypes.c_size_t(1), -3)",
    "bpf": "syscall(321, 280, 0, ctypes.create_string_buffer(128), 128)",
    "perf_event_open": "syscall(298, 241, ctypes.create_string_buffer(128), 0, -1, -1, ctypes.c_ulong(0))",
    "userfaultfd": "syscall(323, 282, 1)",
    "io_uring_setup": "syscall(425, 425, 1, ctypes.create_string_buffer(256))",
    "open_by_handle_at": "syscall(304, 265, 3, ctypes.create_string_buffer(64), 0)",
    "pidfd_getfd": "syscall(438, 438, 0, 0, 0)",
    "kexec_load": "syscall(246, 104, 0, 0, None, 0xffffffff)",
    "reboot": "syscall(169, 142, 1, 2, 3, None)",
    "swapon": "syscall(167, 224, b'/nothing', 0)",
    "init_module": "syscall(175, 105, None, 0, None)",
    "shmget": "syscall(29, 194, 0, ctypes.c_size_t(4096), 0o1600)",
}


@pytest.mark.parametrize("name", SYSTEM_CALLS)
def test_system_calls(attacked, name):
    """Is each of these system calls refused?"""
    if attacked.level in PROTECTED:
        assert attacked.run(SYSTEM_CALLS[name]) == "EPERM"
    elif name in ("ptrace", "process_vm_readv", "shmget"):  # these need no privilege
        assert attacked.run(SYSTEM_CALLS[name]) == DONE


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 has these tables")
@pytest.mark.parametrize(
    "code",
    [bytes.fromhex("b814000000cd80c3"), bytes.fromhex("b8270000400f05c3")],
    ids=["getpid by int 0x80", "getpid of x32"],
)
def test_other_system_call_tables(attacked, code):
    """Are system calls by the 32-bit tables, whose numbers are others, refused?"""
    if attacked.level in PROTECTED:
        assert attacked.run(f"call_code(bytes.fromhex({code.hex()!r}))") == "-1"


def test_privileges(attacked):
    """Has the worker no capability but the one for reading, no new privileges, and a filter?"""
    if attacked.level is Level.none:
        pytest.skip("level none")
    words = attacked.run("' '.join(Path('/proc/self/status').read_text().partition('CapPrm')[2].split())").split()
    allowed = (0, 4) if attacked.level is Level.landlock else (0,)
    for name in ("CapEff:", "CapBnd:") if os.geteuid() == 0 else ("CapEff:",):
        assert int(words[words.index(name) + 1], 16) in allowed
    assert words[words.index("NoNewPrivs:") + 1] == "1" and words[words.index("Seccomp:") + 1] == "2"


@pytest.mark.parametrize("file", ["environ", "mem", "maps", "cmdline", "fd/0"])
def test_the_judges_process(attacked, file):
    """Can the judge's environment or memory be read?"""
    check(attacked, f"open('/proc/{os.getpid()}/{file}', 'rb') and 'done'", HIDDEN, succeeds=file != "fd/0")


def test_signals(attacked):
    """Can a signal be sent to the judge, or to the worker's supervisor?"""
    if attacked.level is Level.bubblewrap:  # the numbers mean other processes
        assert attacked.run(f"os.kill({os.getpid()}, 0) or 'done'") in ("ESRCH", "EPERM")
    else:
        check(attacked, f"os.kill({os.getpid()}, 0) or 'done'", ("EPERM",))
        check(attacked, "os.kill(os.getppid(), 0) or 'done'", ("EPERM",))


def test_shared_memory_of_the_machine(attacked):
    """Can a file in the machine's /dev/shm be read?"""
    file = Path("/dev/shm") / f"grader-test-{os.getpid()}"
    file.write_text("secret")
    try:
        check(attacked, f"read({str(file)!r})", HIDDEN)
    finally:
        file.unlink()


@pytest.mark.parametrize("device", ["/dev/tty", "/dev/tty0", "/dev/kmsg", "/dev/vda", "/dev/kvm"])
def test_devices(attacked, device):
    """Can a terminal, a disk, or the kernel's log be opened?"""
    if attacked.level in PROTECTED:
        assert attacked.run(f"open({device!r}, 'rb')") in (*HIDDEN, "ENXIO")


def test_parameters_of_the_kernel(attacked):
    """Can kernel parameters be changed?"""
    if attacked.level in PROTECTED:
        assert attacked.run("open('/proc/sys/kernel/core_pattern', 'w')") in (*HIDDEN, "EROFS")
        assert attacked.run("open('/proc/sysrq-trigger', 'w')") in (*HIDDEN, "EROFS")


@pytest.mark.parametrize("level", PROTECTED)
def test_a_worker_with_a_gpu_names_its_threads_and_changes_nothing_else(level, tmp_path, monkeypatch):
    """CUDA's driver writes /proc/self/task/*/comm, and does not start if it cannot."""
    monkeypatch.setattr("grader.worker.view.list_devices", lambda: [Path("/dev/full")])
    made = Attacked(level, tmp_path, gpu=True)
    try:
        named = "f'/proc/self/task/{next(iter(os.listdir(\"/proc/self/task\")))}/comm'"
        assert made.run(f"open({named}, 'w').write('mine')") == "4"
        for file in (
            "sys/kernel/core_pattern",
            "sysrq-trigger",
            "irq/default_smp_affinity",
            "sys/vm/overcommit_memory",
        ):
            if Path("/proc", file).exists():
                assert made.run(f"open('/proc/{file}', 'w')") in (*HIDDEN, "EROFS"), file
    finally:
        made.process.kill()


def test_the_environment(attacked):
    """Does the worker inherit no variable that it does not need?"""
    names = attacked.run("' '.join(os.environ)").strip("'").split()
    assert "PATH" in names and not {"SSH_AUTH_SOCK", "PYTEST_CURRENT_TEST", "DBUS_SESSION_BUS_ADDRESS"} & {*names}


@pytest.mark.parametrize("level", sample(Level, [Level.landlock]))
def test_a_daemon_ends_with_its_worker(level, tmp_path):
    """Does kill() end a process that left parent, session, process group and environment behind, and wait for it?"""
    mark = f"{time.time_ns()}"
    made = Attacked(level, tmp_path.resolve())
    try:
        assert made.run(f"start_daemon({mark!r})") == DONE
        deadline = time.monotonic() + 10
        while not find_processes(mark) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        made.process.kill()
    assert not find_processes(mark)


@pytest.mark.slow
@pytest.mark.parametrize("level", list(Level))
def test_nothing_outlives_a_judge_that_is_killed(level, tmp_path):
    """Does everything end when the judge gets SIGKILL, and is its folder for temporary files as it was?"""
    if trouble := find_trouble(level, tmp_path):
        pytest.skip(f"{level}: {trouble}")
    mark = f"{time.time_ns()}"
    code = f"""
import time
from pathlib import Path
from grader.worker.levels import Level
from tests.grader.worker.attacked import Attacked
made = Attacked(Level({level.value!r}), Path({str(tmp_path.resolve())!r}))
print(made.run("start_daemon({mark!r})"), flush=True)
time.sleep(600)
"""
    temporary = tmp_path.resolve() / "temporary"
    temporary.mkdir(mode=0o711)
    environment = os.environ | {"PYTHONPATH": str(sandbox.PROJECT), "TMPDIR": str(temporary)}
    judge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert judge.stdout and judge.stdout.readline()
    assert list(temporary.iterdir())
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    deadline = time.monotonic() + 10

    def find_left() -> list:
        return [*find_processes(str(tmp_path.resolve())), *find_processes(mark), *temporary.iterdir()]

    while find_left() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not find_left()
