"""Grade a made class undisturbed, and again while its processes are killed at random; the grades must be the same.

    python benchmarks/validate/kills.py [--students N] [--kills K] [--cluster] [--jobs N] [--seed S] [--json]
                                        [--folder DIRECTORY]

A class of N students hands in five problems in every way that tests/grader/classroom/handed_in.py knows. It is graded
once to the end. Then, from the same database, again: K times SIGKILL hits the client, a process that grades for it, a
submission's supervisor, a submission's worker, or with --cluster a dask worker, at a random moment; a killed client is
started again. Compared are the verdicts but for their times, how often each was written, and the exported table, byte
for byte. Left over may be no process, no temporary file, no shared memory. --json keeps what was found in
data/kills.json. The exit status is 1 if anything differs or is left, or if the grading ended before K kills.

It takes long on two cores. With --folder, Ctrl-C or SIGTERM ends it and keeps what is graded there; the same command
goes on then, and says how often it was stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from grader.classroom.gradings import Verdicts
from grader.classroom.journal import Journal
from grader.verdict import Outcome
from tests.grader.classroom.dask_cluster import LocalCluster, local_cluster
from tests.grader.classroom.handed_in import write_handed_in

DATA = DATA_FOLDER / "kills.json"
GRADER = [sys.executable, "-m", "grader", "class"]
# What may be killed, by words of its command line.
TARGETS = {
    "judge": "grader.judging.processes.judge",
    "supervisor": "worker/supervisor.py",
    "worker": "worker/bootstrap.py",
}
CLIENT, DASK = "client", "dask worker"
LONGEST_S = 6 * 3600.0
STATE = "kills.json"  # in a folder that is kept


@dataclass
class State:
    """What is known of a run that may be stopped and go on.

    handed_in: how many files there are of each kind. shared: what lay in /dev/shm before. seconds: of the undisturbed
    gradings. done: how often each kind of process was killed. stops: how often this program was stopped. most_memory:
    bytes of the command's process, undisturbed and disturbed.
    """

    handed_in: dict[str, int]
    shared: list[str]
    seconds: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    stops: int = 0
    statuses: list[int] = field(default_factory=list)
    most_memory: list[int] = field(default_factory=lambda: [0, 0])

    def keep(self, folder: Path) -> None:
        known = vars(self) | {"done": dict(self.done)}  # asdict() would count the pairs of a Counter
        (folder / STATE).write_text(json.dumps(known), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> State:
        known = json.loads((folder / STATE).read_text(encoding="utf-8"))
        return State(**known | {"done": Counter(known["done"])})


class Class:
    """A course's folder that is graded. most_memory: bytes of the command's process, the most that were seen."""

    def __init__(self, folder: Path, options: list[str]):
        self.folder, self.options = folder, options
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.most_memory = 0
        self.client: psutil.Popen | None = None

    def stop(self) -> None:
        """End the command as Ctrl-C does, and wait for it."""
        if self.client is not None and self.client.poll() is None:
            self.client.send_signal(signal.SIGINT)
            self.client.wait()

    def start(self) -> psutil.Popen:
        words = ["grade", "--course", str(self.folder), "--allow-unsandboxed", "--timeout", "10", *self.options]
        environment = os.environ | {"TMPDIR": str(self.temporary)}
        with open(self.folder / "log.txt", "ab") as log:
            self.client = psutil.Popen(
                [*GRADER, *words], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        return self.client

    def wait(self, client: psutil.Popen, seconds: float) -> bool:
        """Wait so long, and note the client's memory; return whether it has ended."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and client.poll() is None:
            with contextlib.suppress(psutil.Error):
                self.most_memory = max(self.most_memory, client.memory_info().rss)
            time.sleep(min(0.5, left))
        return client.poll() is not None

    def finish(self) -> int:
        """Grade what is left to the end; return the exit status."""
        client = self.start()
        self.wait(client, LONGEST_S)
        return client.returncode

    def count(self) -> int:
        """Return how many verdicts there are."""
        with Journal(self.folder) as journal:
            return journal.read("SELECT count(*) FROM verdicts")[0][0]

    def read(self) -> tuple[dict[str, list], bytes, list[str]]:
        """Return the verdicts without times by key, the exported table, and the keys that were written twice."""
        with Journal(self.folder) as journal:
            rows = journal.read("SELECT key, verdict FROM verdicts ORDER BY number")
            sound = journal.read("PRAGMA integrity_check")[0][0]
        if sound != "ok":
            raise click.ClickException(f"The database is damaged: {sound}")
        table = self.folder / "grades.csv"
        words = ["export", str(table), "--course", str(self.folder)]
        subprocess.run([*GRADER, *words], cwd=ROOT, check=True, capture_output=True)
        made = [(key, _without_times(json.loads(verdict))) for key, verdict in rows]
        judged = Counter(key for key, verdict in made if verdict[0] != Outcome.error)  # errors are graded again
        return dict(made), table.read_bytes(), [key for key, count in judged.items() if count > 1]

    def list_left(self) -> list[str]:
        """Return what is left of it: processes that know its folder, and temporary files."""
        left, wanted = [], str(self.folder)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                known = [*process.cmdline(), *process.environ().values()]
                if process.pid != os.getpid() and any(wanted in each for each in known):
                    left.append(f"process {process.pid}: {' '.join(process.cmdline())[:100]}")
        return left + [f"temporary file {name}" for name in os.listdir(self.temporary)]


def _without_times(verdict: dict) -> list:
    stages = [(one["name"], one["status"], one.get("reason")) for one in verdict["stages"]]
    return [verdict["outcome"], verdict["problem"], verdict["submission"]["sha256"], verdict["seed"], stages]


def kill_one(client: psutil.Popen, dask: Sequence[subprocess.Popen], draw: random.Random) -> str:
    """Kill one process of a class, and return what it was; empty if it was gone already."""
    found: dict[str, list] = {CLIENT: [client]}
    alive = [psutil.Process(one.pid) for one in dask if one.poll() is None]
    if alive:
        found[DASK] = alive
    for root in (client, *alive):
        with contextlib.suppress(psutil.Error):
            for process in root.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    line = process.cmdline()
                    name = next((name for name, words in TARGETS.items() if any(words in one for one in line[:8])), "")
                    found.setdefault(name, []).append(process)
    found.pop("", None)
    name = draw.choice(sorted(found))
    try:
        draw.choice(found[name]).send_signal(signal.SIGKILL)
    except psutil.Error:
        return ""
    return name


def disturb(
    made: Class, kills: int, done: Counter[str], pause: float, draw: random.Random, cluster: LocalCluster | None = None
) -> None:
    """Grade a class until its processes have been killed so many times.

    done: how often each kind was; what is killed now is added. pause: seconds between two kills, on average.
    """
    client = made.start()
    while done.total() < kills and not made.wait(client, draw.uniform(0, 2 * pause)):
        name = kill_one(client, cluster.workers if cluster else [], draw)
        if name:
            done[name] += 1
            click.echo(f"{done.total()}: {name} killed after {made.count()} verdicts")
        if name == CLIENT:
            client.wait()
            client = made.start()
        if name == DASK and cluster:
            cluster.add_worker()
    made.wait(client, LONGEST_S)


def prepare(top: Path, students: int, seed: int) -> State:
    """Write the class, undisturbed and disturbed, from one database; return what is known of it."""
    folders = [top / name for name in ("undisturbed", "disturbed")]
    kinds = write_handed_in(folders[0], students, seed)
    words = ["collect", str(folders[0] / "handed_in"), "--course", str(folders[0])]
    subprocess.run([*GRADER, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with Journal(folders[0]) as journal:
        Verdicts(journal).read_secret()
    shutil.copytree(folders[0], folders[1])
    state = State(dict(kinds), os.listdir("/dev/shm"))
    state.keep(top)
    return state


@contextlib.contextmanager
def stoppable(top: Path, state: State, classes: Sequence[Class]) -> Iterator[None]:
    """Keep the state whatever ends what is done inside; end the gradings where Ctrl-C or SIGTERM does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts this in the background ignores it
    try:
        yield
    except KeyboardInterrupt:
        state.stops += 1
        for one in classes:
            one.stop()
        raise click.ClickException(f"Stopped. The same command with --folder {top} goes on.") from None
    finally:
        state.most_memory = [max(most, one.most_memory) for most, one in zip(state.most_memory, classes)]
        state.keep(top)


def grade(calm: Class, shaken: Class, state: State, kills: int, on_cluster: bool, seed: int) -> None:
    """Grade both classes to the end, from where they are."""
    if not state.statuses:
        begun = time.monotonic()
        try:
            state.statuses = [calm.finish()]
        finally:
            state.seconds += time.monotonic() - begun
        click.echo(f"{calm.count()} gradings undisturbed in {state.seconds:.0f} s, exit status {state.statuses[0]}")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(local_cluster(shaken.folder)) if on_cluster else None
        shaken.options = [*shaken.options, *(["--scheduler", cluster.address] if cluster else [])]
        draw = random.Random(seed + state.done.total())
        disturb(shaken, kills, state.done, state.seconds / max(1, kills) / 2, draw, cluster)
        state.statuses = [state.statuses[0], shaken.finish()]


@click.command(help=__doc__)
@click.option("--students", type=click.IntRange(1), default=300, show_default=True)
@click.option("--kills", type=click.IntRange(0), default=20, show_default=True)
@click.option("--cluster", "on_cluster", is_flag=True, help="Grade the disturbed run on two local dask workers.")
@click.option("--jobs", type=click.IntRange(1), help="As of grader class grade.")
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "keep", is_flag=True, help="Keep what was found in data/kills.json.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the class here, and go on.")
def main(
    students: int, kills: int, on_cluster: bool, jobs: int | None, seed: int, keep: bool, folder: Path | None
) -> None:
    options = ["--device", "cpu", *(["--jobs", str(jobs)] if jobs else [])]
    with contextlib.ExitStack() as stack:
        top = folder.resolve() if folder else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-")))
        state = State.read(top) if (top / STATE).is_file() else prepare(top, students, seed)
        calm, shaken = (Class(top / name, options) for name in ("undisturbed", "disturbed"))
        with stoppable(top, state, [calm, shaken]):
            grade(calm, shaken, state, kills, on_cluster, seed)
        first, second = calm.read(), shaken.read()
        if state.done.total() < kills:
            click.echo(f"The grading ended after {state.done.total()} of {kills} kills.")
        differing = [key for key in first[0].keys() | second[0].keys() if first[0].get(key) != second[0].get(key)]
        for key in differing[:10]:
            click.echo(f"differs: {first[0].get(key)} and {second[0].get(key)}")
        left = [*calm.list_left(), *shaken.list_left(), *(set(os.listdir("/dev/shm")) - set(state.shared))]
    found = {
        "students": students,
        "handed_in": state.handed_in,
        "gradings": len(first[0]),
        "seconds": round(state.seconds, 1),
        "stops": state.stops,
        "outcomes": dict(Counter(one[0] for one in first[0].values())),
        "killed": dict(state.done),
        "exit_statuses": state.statuses,
        "differing_verdicts": len(differing),
        "written_twice": [len(first[2]), len(second[2])],
        "same_table": first[1] == second[1],
        "left": left,
        "most_memory_mb": [round(most / 1e6) for most in state.most_memory],
    }
    for name, value in found.items():
        click.echo(f"{name}: {value}")
    if keep:
        DATA.write_text(json.dumps({"machine": describe_machine()} | found, indent=1) + "\n", encoding="utf-8")
    disturbed = state.done.total() >= kills
    sys.exit(not disturbed or bool(differing or left or first[2] or second[2] or first[1] != second[1]))


if __name__ == "__main__":
    main()
