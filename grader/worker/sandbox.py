"""Start the worker process of a submission, isolated from the rest of the machine as far as the machine can.

There are three levels (`grader.worker.levels`). With bubblewrap the worker sees listed files alone, in namespaces of
its own. With Landlock the kernel refuses it all other files and the network. Without either there are resource limits,
and reports say so. At each level a supervisor ends everything that the worker started.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.paths import inductor_cache
from grader.worker import bootstrap, bubblewrap, confine, supervisor
from grader.worker.build_folders import make_usable
from grader.worker.cgroups import Group, make_group
from grader.worker.levels import NOT_RUN, Level, SandboxError, describe, has_gpu, is_unprotected, list_gpus, probe
from grader.worker.process import JUDGE, MARK, Log, Process, end_all, has_started, register, undisturbed
from grader.worker.shown_file import Shown, SubmissionChanged, show
from grader.worker.view import PROJECT, View, make_environment, make_view
from simt.runtime.monitor import Monitor
from simt.toolchain.cache import cache_dir, trim_folder, user_cache
from simt.toolchain.removal import remove_tree

__all__ = [
    "JUDGE",
    "MARK",
    "NOT_RUN",
    "PROJECT",
    "Level",
    "Log",
    "Process",
    "SandboxError",
    "SubmissionChanged",
    "end_all",
    "extensions",
    "folders",
    "has_gpu",
    "has_started",
    "is_unprotected",
    "list_gpus",
    "make_folders",
    "simt_cache",
    "start",
    "start_trusted",
    "undisturbed",
    "why_not",
]

HOW_TO_DO_WITHOUT = "To run submissions that you trust without protection, give --allow-unsandboxed."
GIB = 1 << 30
MEMORY = 16 * GIB  # address space of a worker on the CPU
MOST_PROCESSES = 8192
LIMITS = f"limits for each process: {MEMORY // GIB} GiB, files of 4 GiB"
GPU_LIMITS = "limits for each process: files of 4 GiB"


def why_not() -> str:
    """Return why there is no sandbox here, in one sentence; empty if there is one."""
    return probe().trouble


# --- caches ----------------------------------------------------------------------------------------------------------


def extensions(sha256: str, gpu: bool = False) -> Path:
    """Return torch's build folder for the file with this hash, which no other file uses.

    gpu: for a worker with a GPU. The same file may be graded on the CPU meanwhile, by another user.
    """
    return user_cache() / "grader" / "extensions" / (sha256[:16] + ("-gpu" if gpu else ""))


def simt_cache() -> Path:
    """Return simt's cache as an absolute path, which means the same in the worker's current folder."""
    return cache_dir()


SUBMISSIONS = "submissions"  # a folder of simt's cache
KEPT = 200  # submissions whose builds are kept


def folders(builds: Path) -> tuple[list[Path], list[Path], dict[str, str]]:
    """Folders that a worker may write to, folders that it may read, and the variables that name them. builds: torch's,
    for its submission.

    In a sandbox simt's cache can be read alone, and of it only what holds no kernel: what the judge and other
    submissions' workers will load lies there. What this submission builds is kept next to it.
    """
    shared, named = simt_cache(), {"TORCH_EXTENSIONS_DIR": str(builds)}
    if why_not():
        return [builds, shared], [], named | {"SIMT_CACHE": str(shared)}
    own = shared / SUBMISSIONS / builds.name
    return [builds, own], [shared], named | {"SIMT_CACHE": str(own), "SIMT_CACHE_SHARED": str(shared)}


# --- the process -----------------------------------------------------------------------------------------------------


def start_trusted() -> Process:
    """Start a worker with a GPU and no sandbox for what the judge would run itself: a problem's Model.

    torch.compile keeps what it compiles between gradings.
    """
    cache = user_cache() / "grader"
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": str(inductor_cache()),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCH_EXTENSIONS_DIR": str(cache / "extensions"),
        "SIMT_CACHE": str(simt_cache()),
    }
    work = Path(tempfile.mkdtemp(prefix="grader-")).resolve()
    with undisturbed():
        process = _start(Level.none, None, 0, work, environment, True, [], Shown())
        register(process)
    return process


def start(submission: Path, content: bytes, *, gpu: bool, builds: Path, required: bool = False) -> Process:
    """Start a worker for a submission. gpu: whether it may use one. builds: the folder for torch's builds of it, made
    if missing.

    submission: the real path of its file. content: what the judge has read there, which is what a worker in a sandbox
    sees at that path. Raises SandboxError if a sandbox is required and not available, and where one should work and
    does not; SubmissionChanged where the path leads to something else by now and the level can show nothing but that.
    """
    trouble = why_not()
    if trouble and required:
        raise SandboxError(f"A sandbox is required but not available: {trouble} {HOW_TO_DO_WITHOUT}")
    if trouble and probe().is_broken:
        raise SandboxError(trouble)
    level = Level.none if trouble else probe().level
    writable, readable, environment = folders(builds)
    if not gpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    make_folders(builds)
    _claim(writable if level is not Level.none else writable[:1])
    work = Path(tempfile.mkdtemp(prefix="grader-")).resolve()
    view, user, shown = None, 0, Shown()
    try:
        if level is not Level.none:
            view = make_view(submission, [work, *writable], readable[0], gpu)
            shown = show(level, view, content)
            user = confine.choose_user(builds, view) if level is Level.landlock and not gpu else 0
            _give_folders([work, *view.writable], user or os.geteuid())
        with undisturbed():
            process = _start(level, view, user, work, environment, gpu, writable, shown)
            register(process)
    except BaseException:
        shown.discard()
        remove_tree(work)
        raise
    finally:
        shown.close()
    return process


def make_folders(builds: Path) -> None:
    """Make the folders that a worker writes to, and replace the submission's own where they cannot be used.

    Raises OSError.
    """
    own, *others = folders(builds)[0]
    make_usable(own)
    for folder in others:
        if why_not():  # simt's cache, which belongs to the judge
            folder.mkdir(parents=True, exist_ok=True)
        else:
            make_usable(folder)


def _claim(folders: list[Path]) -> None:
    """Make the folders of one submission, note that they are used, and remove those of submissions not graded lately.

    Another grader may be about to remove them as long unused: what is gone is made again.
    """
    for folder in folders:
        for _ in range(10):  # without a sandbox another submission may remove it at any time
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError):
                os.utime(folder, follow_symlinks=False)
                break
        trim_folder(folder.parent, KEPT)


def _give_folders(writable: list[Path], user: int) -> None:
    """Make `user` the owner of each folder. One that belongs to another user is emptied first."""
    for folder in writable:
        if folder.lstat().st_uid != user:
            remove_tree(folder)
            folder.mkdir(mode=0o700)
            os.chown(folder, user, user if os.geteuid() == 0 else -1, follow_symlinks=False)


def _start(
    level: Level,
    view: View | None,
    user: int,
    work: Path,
    environment: dict[str, str],
    gpu: bool,
    writable: list[Path],
    shown: Shown,
) -> Process:
    ours, theirs = socket.socketpair()
    log_reader, log_writer = os.pipe()
    pipe_reader, pipe_writer = os.pipe()
    mark, group = secrets.token_hex(8), make_group(MEMORY, MOST_PROCESSES)
    monitor = None if gpu else Monitor()
    lent = monitor.descriptors if monitor else ()
    command = [sys.executable, "-P", bootstrap.__file__, str(theirs.fileno()), "0" if gpu else str(MEMORY)]
    command += map(str, lent)
    data: dict[str, int] = {}
    confinement = None
    if view is not None and level is Level.bubblewrap:
        data = bubblewrap.open_data(gpu)
        command = bubblewrap.make_command(view, work, command, data, shown.copy.file if shown.copy else None)
    elif view is not None:
        confinement = confine.make_confinement(view, gpu, user, shown.opened)
    plan = supervisor.Plan(
        command=command,
        judge=os.getpid(),
        pipe=pipe_reader,
        descriptors=[theirs.fileno(), *lent, *data.values(), *shown.opened],
        group=str(group.folder) if group else "",
        confinement=confinement,
        folders=[str(work), *([str(shown.copy.folder)] if shown.copy else [])],
    )
    try:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(plan)],
            stdin=subprocess.DEVNULL,
            stdout=log_writer,
            stderr=log_writer,
            cwd=work,
            env=make_environment(work, environment | {MARK: mark, JUDGE: str(os.getpid())}),
            pass_fds=(pipe_reader, *plan["descriptors"]),
            start_new_session=True,
        )
    except BaseException:
        if monitor:
            monitor.close()
        raise
    finally:
        os.close(log_writer)
        os.close(pipe_reader)
        theirs.close()
        if monitor:
            monitor.close_descriptors()
        bubblewrap.close_data(data)
    return Process(
        popen, ours, Log(log_reader), work, mark, pipe_writer, _describe(level, user, group, gpu),
        level is Level.bubblewrap, [work, *writable] if view else [work, *writable[:1]], group, monitor, shown.copy,
    )  # fmt: skip


def _describe(level: Level, user: int, group: Group | None, gpu: bool) -> str:
    """Return what was in force, for reports."""
    limits = GPU_LIMITS if gpu else LIMITS
    return f"{describe(level, bool(user))}; {limits}" + (f"; {group.description}" if group else "")
