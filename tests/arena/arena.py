"""Grade a dishonest submission in a batch with a classmate's honest one, and find out what it achieved.

An arena is a folder that stands for an instructor's machine. Its name is `arena-PORT-TERMINAL`, so that an attack
learns from its own path where it may do harm, and tries to do none anywhere else:

    submissions/   the dishonest file and the classmate's; the command runs here
    course/        the instructor's clone; `precious.txt` must stay as it is
    home/          the instructor's home; `notes.txt` holds a secret, `exam.py` a solution
    bin/           the first folder of the instructor's PATH
    cache/, tmp/   the grader's own
    socket, datagrams, PORT, and the arena's name as an abstract socket: services, as a container's daemon is one
    /dev/pts/TERMINAL: the instructor's terminal
"""

from __future__ import annotations

import contextlib
import os
import pty
import secrets
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from grader.verdict import Outcome, Verdict, from_json, spelled
from grader.worker.levels import Level
from grader.worker.view import SHARED_KINDS
from simt.toolchain.cache import cache_dir
from simt.toolchain.removal import remove_tree
from tests.arena import machine
from tests.arena.furniture import KINDS, PLANTS, read_solution
from tests.arena.specimen import OWN_SECONDS, ROOT, Attempt, Specimen

WATCHED = ["submissions", "course", "home", "bin"]
SPARE_SECONDS = 240.0  # beside a submission's own limit: two workers start and compile
KEPT_BYTES, KEPT_ENTRIES = 64 << 20, 2000  # that one batch may leave in the grader's caches
MOST_WRITTEN = 1 << 20  # bytes of a verdict, and of what the command prints


@dataclass(frozen=True)
class Done:
    """What a command wrote. status: its exit status, None if it had to be stopped."""

    verdicts: list[Verdict]
    status: int | None
    printed: str


class Arena:
    """A machine at one level of the sandbox, on which one batch after another is graded."""

    def __init__(self, level: Level, folder: Path):
        self.level, self.secret = level, f"SECRET-{secrets.token_hex(8)}"
        self.services = machine.Services()
        self.master, self.terminal = pty.openpty()
        self.spare = folder.resolve() / "caches"
        self.folder = folder.resolve() / f"arena-{self.services.port}-{os.path.basename(os.ttyname(self.terminal))}"
        self.folder.mkdir(parents=True)
        self.services.listen(self.folder)
        self._furnish()
        # so that an honest submission is built once, and attacks find its builds
        done = self._grade([self._hand_in_honest("logsumexp")], "logsumexp", OWN_SECONDS)
        if [one.outcome for one in done.verdicts] != [Outcome.passed]:
            raise RuntimeError(f"the honest submission does not pass: {done.printed}")
        subprocess.run(["cp", "-a", str(self.folder / "cache"), str(self.spare)], check=True)

    def close(self) -> None:
        """Remove everything."""
        self.services.close()
        os.close(self.master)
        os.close(self.terminal)
        self._remove_leftovers()
        remove_tree(self.folder)
        remove_tree(self.spare)

    def attempt(self, specimen: Specimen) -> Attempt:
        """Grade a specimen before an honest file; return its verdict and what it achieved."""
        (made,), harms = self.attempt_together([specimen])
        made.harms += harms
        return made

    def attempt_together(self, specimens: list[Specimen]) -> tuple[list[Attempt], list[str]]:
        """Grade specimens of one problem in a batch, and an honest file at its end.

        Returns what became of each, and what the batch achieved that belongs to none of them alone.
        """
        problem, shows_problem = specimens[0].problem, specimens[0].names_problem
        honest = self._hand_in_honest(problem)
        names = [self._hand_in(specimen) for specimen in specimens]
        for specimen in specimens:
            for plant in specimen.plants:
                PLANTS[plant](self.folder, problem)
        files, cached, mounts = self._list_files(), machine.measure(self.folder / "cache"), machine.list_mounts()
        self.services.take_reached()
        started = time.monotonic()
        with machine.gather_orphans() as orphans:
            seconds = max(specimen.seconds for specimen in specimens)
            done = self._grade([*names, honest], problem if shows_problem else "", seconds)
        made = [Attempt(specimen, self.level, status=done.status, printed=done.printed) for specimen in specimens]
        for one, name in zip(made, names):
            one.verdict = next((each for each in done.verdicts if is_of(each, name)), None)
            one.harms += self._find_harm_in_verdict(one)
            one.seconds = (time.monotonic() - started) / len(made)
        harms = [f"process {one} was left behind" for one in orphans]
        harms += [f"{file} was changed" for file in _find_changes(files, self._list_files())]
        harms += [f"tmp/{name} was left behind" for name in os.listdir(self.folder / "tmp")]
        harms += [f"service {name} was reached" for name in self.services.take_reached()]
        harms += [f"{one} was mounted" for one in sorted(machine.list_mounts() - mounts) if self._is_own(one)]
        harms += ["a segment of shared memory was left behind"] * machine.has_segment()
        harms += _describe_growth(cached, machine.measure(self.folder / "cache"))
        harms += self._find_harm_to_batch(done, len(names) + 1)
        if not specimens[0].refused:
            harms += _find_harm_to_classmate(honest, done.verdicts)
        self._clean(bool(harms) or any(one.harms for one in made))
        return made, harms

    def _find_harm_in_verdict(self, made: Attempt) -> list[str]:
        """Return what a submission has achieved by its own verdict."""
        if made.verdict is None:
            return []
        found = ["its report shows the instructor's secret"] if self.secret in repr(made.verdict) else []
        wanted, outcome = Outcome.error if made.specimen.refused else made.specimen.outcome, made.verdict.outcome
        if outcome is Outcome.passed and wanted != Outcome.passed:
            found.append("it passed")
        if outcome not in (Outcome.passed, Outcome.failed, wanted):
            found.append(f"its verdict is {outcome}: {made.verdict.first_problem.message}")
        return found

    def _find_harm_to_batch(self, done: Done, submissions: int) -> list[str]:
        """Return what is wrong with the end of a batch and with what it wrote."""
        found = []
        if done.status is None or done.status < 0:
            found.append("the command did not end" if done.status is None else f"the command got signal {-done.status}")
        if self.secret in done.printed:
            found.append("the command showed the instructor's secret")
        if self._read_terminal():
            found.append("the instructor's terminal was written to")
        if "Traceback (most" in done.printed or "\x1b" in done.printed or len(done.printed) > MOST_WRITTEN:
            found.append("the command printed a traceback, control characters, or too much")
        if len(done.verdicts) > submissions:
            found.append("there are more verdicts than submissions")
        return found

    def _grade(self, names: list[str], problem: str, seconds: float) -> Done:
        """Run `grader grade`."""
        out = self.folder / "out"
        remove_tree(out)
        out.mkdir()
        command = [sys.executable, "-m", "grader", "grade", *names, "--json", str(out / "verdicts"), "--device", "cpu"]
        command += ["--timeout", str(seconds), "--allow-unsandboxed"]
        command += ["--problem", str(ROOT / "kernels_ref" / problem / "model.py")] if problem else []
        with open(out / "printed", "wb") as printed, open(self.folder / "home" / "exam.py") as exam:
            popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, cwd=self.folder / "submissions",
                env=self._make_environment(), pass_fds=(exam.fileno(),), start_new_session=True,
            )  # fmt: skip
            try:
                status: int | None = popen.wait(len(names) * (seconds + SPARE_SECONDS))
            except subprocess.TimeoutExpired:
                popen.kill()
                popen.wait()
                status = None
        lines = (out / "verdicts").read_bytes().splitlines() if (out / "verdicts").is_file() else []
        with open(out / "printed", encoding="utf-8", errors="replace") as file:
            verdicts = [from_json(line) for line in lines if len(line) <= MOST_WRITTEN]
            return Done(verdicts, status, file.read(2 * MOST_WRITTEN))

    def _make_environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIMT_", "XDG_", "GRADER_"))}
        return kept | {
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "tmp"),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GRADER_SANDBOX": str(self.level),
            "COURSE_PASSWORD": self.secret,
        }

    # -- what lies there --

    def _furnish(self) -> None:
        """Make the folders, with what must not be read or changed."""
        for name in (*WATCHED, "cache/simt", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for kind in SHARED_KINDS:  # those of this machine, so that nothing is rebuilt
            with contextlib.suppress(FileExistsError):
                (self.folder / "cache" / "simt" / kind).symlink_to(cache_dir() / kind)
        (self.folder / "course" / "precious.txt").write_text("grades of last year\n")
        (self.folder / "home" / "notes.txt").write_text(f'password = "{self.secret}"\n')
        (self.folder / "home" / "exam.py").write_text(read_solution("logsumexp"))

    def _hand_in_honest(self, problem: str) -> str:
        name = f"{problem}_classmate.py"
        (self.folder / "submissions" / name).write_text(read_solution(problem))
        return name

    def _hand_in(self, specimen: Specimen) -> str:
        """Put a specimen among the submissions in the way that its row says; return its name."""
        name = specimen.handed_in_as or f"{specimen.problem}_{specimen.name}.py"
        name = os.fsdecode(name.encode("latin-1"))  # any bytes
        for other in specimen.beside:
            KINDS["file"](specimen.file, self.folder / "submissions" / other)
        KINDS[specimen.kind](specimen.file, self.folder / "submissions" / name)
        return name

    def _list_files(self) -> dict[str, str]:
        shared = {str(file): "" for file in Path("/dev/shm").glob(f"{self.folder.name}*")}
        return machine.list_files(self.folder, WATCHED) | shared

    def _is_own(self, path: str) -> bool:
        return Path(path).is_relative_to(self.folder)

    def _read_terminal(self) -> bytes:
        ready, _, _ = select.select([self.master], [], [], 0)
        return os.read(self.master, 4096) if ready else b""

    def _clean(self, was_harmed: bool) -> None:
        """Make the arena what it was; its caches too where an attack achieved something."""
        self._remove_leftovers()
        for name in (*WATCHED, "tmp", *(["cache"] if was_harmed else [])):
            remove_tree(self.folder / name)
        if was_harmed:
            subprocess.run(["cp", "-a", str(self.spare), str(self.folder / "cache")], check=True)
        self._furnish()

    def _remove_leftovers(self) -> None:
        for place in filter(self._is_own, machine.list_mounts()):
            machine.unmount(place)
        for file in Path("/dev/shm").glob(f"{self.folder.name}*"):
            remove_tree(file)
        machine.remove_segment()


def _find_changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _describe_growth(before: tuple[int, int], after: tuple[int, int]) -> list[str]:
    """Return what one batch left in the caches, if it is more than builds need."""
    grown, more = after[0] - before[0], after[1] - before[1]
    if grown <= KEPT_BYTES and more <= KEPT_ENTRIES:
        return []
    return [f"{grown >> 20} MiB in {more} files were left in the caches"]


def is_of(verdict: Verdict, name: str) -> bool:
    """Return whether a verdict is on the submission of this name."""
    return verdict.submission.path == spelled(name)


def _find_harm_to_classmate(honest: str, verdicts: list[Verdict]) -> list[str]:
    """Return how the honest file's verdict differs from the one that it has earned."""
    for verdict in verdicts:
        if is_of(verdict, honest):
            if verdict.outcome is Outcome.passed:
                return []
            return [f"the honest file after it did not pass: {verdict.first_problem.message}"]
    return ["the honest file after it has no verdict"]
