"""Give `python -m simt check` programs with a few tokens changed, and count what it does wrong.

    python benchmarks/validate/fuzz_programs.py [--number N] [--seed S] [--jobs J] [--keep FOLDER]

Each program of tests/simt/programs, tests/simt/checks and tests/simt/corpus is changed in one to three places: a token
is left out, said twice, exchanged for its neighbour or for another of the file, a number, a name or an operator becomes
another, a line is left out or said twice, or the file ends early. One half are changed in numbers, names, operators and
whole statements alone, so that they compile more often. Of a program of several files one is changed.
Most do not compile then, many have defects, and some never end.
What counts as wrong: a traceback, a crash of the tool itself, an exit status that `--help` does not name for such a
file, a compiler's message or a finding without file and line, and a run that does not end in time although no loop
of host code can keep it. A program may end itself with any status: what its text returns or exits with is
let pass. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import ROOT
from benchmarks.validate.programs import CORPUS, PROGRAMS, Program, list_programs
from simt.checking.findings import CHECKS

SEED = 20261129
LAUNCH_S, WHOLE_S = 3, 90  # time limits: of a kernel, and of all
MEMORY = 12 << 30  # address space of a process: a changed size must not fill the machine
OUTPUT = 1 << 20  # bytes of a program's output that are looked at
TOKENS = re.compile(r"\w+|\"(?:\\.|[^\"\\\n])*\"|//[^\n]*|\s+|<<<|>>>|[-+*/%&|<>=!]=|&&|\|\||<<|>>|.", re.S)
ARITHMETIC, COMPARISONS = "+ - * / % & | ^ << >>".split(), "< > <= >= == !=".split()
LOGIC, ASSIGNMENTS = "&& ||".split(), "= += -=".split()
OPERATORS = ARITHMETIC + COMPARISONS + LOGIC + ASSIGNMENTS
NUMBERS = "0 1 -1 2 31 33 255 1024 4096 2147483647 65536 1.5f".split()
FINDING = re.compile(rf"^({'|'.join(CHECKS)}): (.*)$", re.M)
PLACE = re.compile(r"[\w.]+, line \d+")


@dataclass
class Outcome:
    """What became of one program. wrong: what the tool did wrong, if anything."""

    status: str
    wrong: list[str] = field(default_factory=list)
    text: str = ""


def mutate(text: str, dice: random.Random) -> str:
    """Return the program with one to three changes."""
    mild = dice.random() < 0.5
    for _ in range(dice.choice((1, 1, 2, 3))):
        change = change_mildly if mild else change_line if dice.random() < 0.15 else change_token
        text = change(text, dice)
    return text


def change_mildly(text: str, dice: random.Random) -> str:
    """Change a number, an operator or a name of the file into another, or leave out a statement."""
    if dice.random() < 0.2:
        lines = text.splitlines(keepends=True)
        whole = [i for i, line in enumerate(lines) if re.fullmatch(r"\s+[^{}]*;\s*(//.*)?\n", line)]
        if whole:
            del lines[dice.choice(whole)]
            return "".join(lines)
    tokens = TOKENS.findall(text)
    names = [i for i, token in enumerate(tokens) if re.fullmatch(r"[a-z_]\w*", token)]
    arithmetic = [i for i, token in enumerate(tokens) if token[0].isdigit() or token in OPERATORS]
    at = dice.choice((names if dice.random() < 0.3 else arithmetic) or [0])
    if tokens[at][0].isdigit():
        tokens[at] = dice.choice(NUMBERS)
    elif tokens[at] in OPERATORS:
        kind = next(kind for kind in (ARITHMETIC, COMPARISONS, LOGIC, ASSIGNMENTS) if tokens[at] in kind)
        tokens[at] = dice.choice(kind)
    else:
        tokens[at] = tokens[dice.choice(names)] if names else " "
    return "".join(tokens)


def change_token(text: str, dice: random.Random) -> str:
    tokens = TOKENS.findall(text)
    spoken = [i for i, token in enumerate(tokens) if not token.isspace() and not token.startswith("//")]
    if not spoken:
        return text
    arithmetic = [i for i in spoken if tokens[i][0].isdigit() or tokens[i] in OPERATORS]
    # Half the changes are to numbers and operators: those compile more often.
    at, other = dice.choice(arithmetic if arithmetic and dice.random() < 0.5 else spoken), dice.choice(spoken)
    kinds = ["leave out", "repeat", "swap", "exchange"]
    if tokens[at][0].isdigit():
        kinds += ["number"] * 4
    if tokens[at] in OPERATORS:
        kinds += ["operator"] * 4
    match dice.choice(kinds):
        case "leave out":
            tokens[at] = " "
        case "repeat":
            tokens[at] += f" {tokens[at]}"
        case "swap":
            following = next((i for i in spoken if i > at), at)
            tokens[at], tokens[following] = tokens[following], tokens[at]
        case "exchange":
            tokens[at] = tokens[other]
        case "number":
            tokens[at] = dice.choice(NUMBERS)
        case "operator":
            tokens[at] = dice.choice(OPERATORS)
    return "".join(tokens)


def change_line(text: str, dice: random.Random) -> str:
    lines = text.splitlines(keepends=True) or ["\n"]
    at = dice.randrange(len(lines))
    match dice.choice(("leave out", "repeat", "cut", "swap")):
        case "leave out":
            del lines[at]
        case "repeat":
            lines.insert(at, lines[at])
        case "swap":
            other = dice.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case "cut":
            lines = [*lines[: at + 1], lines[at][: dice.randrange(len(lines[at]) + 1)]]
    return "".join(lines)


def check(program: Program, changed: Path, text: str) -> Outcome:
    """Run the checks on a program, one of whose files has another text, and judge what they say."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for file in list_files(program):
            shutil.copy(file, folder)
        (Path(folder) / changed.name).write_text(text, encoding="utf-8")
        words = [*program.list_flags(), *(file.name for file in program.files), *program.arguments]
        with (Path(folder) / "out").open("w+b") as out, (Path(folder) / "err").open("w+b") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "simt", "check", "--seconds", str(LAUNCH_S), *words],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=limit,
            )
            try:
                status = process.wait(WHOLE_S)
            except subprocess.TimeoutExpired:
                subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
                process.wait()
                status = None
            err.seek(0)
            said = err.read(OUTPUT).decode(errors="replace")
    return judge(text, status, said)


def list_files(program: Program) -> list[Path]:
    """Return the files of a program and the headers beside it."""
    beside = program.main.parent
    return [*program.files, *(file for kind in ("*.h", "*.cuh", "*.inc") for file in beside.glob(kind))]


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def judge(text: str, status: int | None, said: str) -> Outcome:
    """Return what the tool did, and what of it is wrong."""
    found = Outcome("did not end" if status is None else str(status), text=said)
    if status is None:
        if not re.search(r"\b(while|for|do)\b", re.sub(r"__global__.*?\n}", "", text, flags=re.S)):
            found.wrong.append("it did not end, and no loop of host code can keep it")
        return found
    if "Traceback (most recent call last)" in said:
        found.wrong.append("a traceback")
    if status < 0:
        found.wrong.append(f"the tool was ended by signal {-status}")
    elif status not in (0, 1, 3, 5) and not re.search(r"\b(return|exit)\b", text):
        found.wrong.append(f"exit status {status}")
    if status == 3 and not PLACE.search(said) and "has no main()" not in said:
        found.wrong.append("what does not compile has no file and line")
    for name, rest in FINDING.findall(said):
        if not PLACE.match(rest) and name not in ("leak", "unchecked_error", "schedule"):
            found.wrong.append(f"a finding ({name}) has no file and line")
    if status in (2, 4):
        found.wrong.append(f"exit status {status}: {said.strip()[-300:]}")
    return found


@click.command(help=__doc__)
@click.option("--number", default=300, help="How many programs.")
@click.option("--seed", default=SEED, help="Of the changes.")
@click.option("--jobs", default=2, help="Programs at a time.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for the programs with which something is wrong.")
def main(number: int, seed: int, jobs: int, keep: Path | None) -> None:
    folders = (PROGRAMS, PROGRAMS / "defects", ROOT / "tests/simt/checks", CORPUS)
    programs = [program for folder in folders for program in list_programs(folder)]
    counts: Counter[str] = Counter()
    wrong = 0

    def one(index: int) -> tuple[int, Path, str, Outcome]:
        dice = random.Random(f"{seed} {index}")
        program = dice.choice(programs)
        path = dice.choice(list_files(program) if len(program.files) > 1 else program.files)
        text = mutate(path.read_text(encoding="utf-8"), dice)
        return index, path, text, check(program, path, text)

    with ThreadPoolExecutor(jobs) as pool:
        for index, path, text, outcome in pool.map(one, range(number)):
            counts[outcome.status] += 1
            if not outcome.wrong:
                continue
            wrong += 1
            print(f"{index}, {path.name}: {'; '.join(outcome.wrong)}", flush=True)
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{index}_{path.name}").write_text(text, encoding="utf-8")
                (keep / f"{index}_{path.stem}.txt").write_text(outcome.text, encoding="utf-8")
    listed = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
    print(f"{number} programs, seed {seed}: {wrong} with something wrong. Exit statuses: {listed}.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
