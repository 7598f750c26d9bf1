"""Compare what two checkouts report: the verdict on every labelled submission, and simt's output on every test program.

    python benchmarks/validate/behaviour.py collect OUT.json --root CHECKOUT [--only TEXT] [--jobs N]
    python benchmarks/validate/behaviour.py compare BEFORE.json AFTER.json

`collect` grades tests/specimens, kernels_ref (solutions, backwards, steps, fastest) and kernels_student of CHECKOUT on
the CPU with one seed, and runs `simt run`, `check` and `count` over the programs of tests/simt. It runs the checkout's
own command lines, so two versions with different modules can be compared. An interrupted collection resumes. `compare`
drops times, versions and paths and prints every other difference: each kind once, those that are no sentence first.
It exits with status 1 if there is one.
"""

import argparse
import concurrent.futures
import difflib
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

SEED = 20
GRADE_TIMEOUT_S = 900
BATCH = 6
PROGRAM_TIMEOUT_S = 60  # a program with a planted defect may hang where no check stops it
RENAMED = [("limit_backward", "fastest_backward"), ("limit", "fastest")]  # file names before and after
PROSE = re.compile(r'^. +"(message|pattern|text|detail|output)": ')  # lines of a verdict that hold a sentence
TIMED = {"seconds", "versions", "sha256", "problem_sha256", "path", "sandbox"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("out", type=Path)
    collecting.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    collecting.add_argument("--only", default="", help="names that contain this text")
    collecting.add_argument("--jobs", type=int, default=1)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "collect":
        collect(options.out, options.root.resolve(), options.only, options.jobs)
    else:
        sys.exit(compare(json.loads(options.before.read_text()), json.loads(options.after.read_text())))


def collect(out: Path, root: Path, only: str, jobs: int) -> None:
    """Write every record of a checkout to OUT, a batch after another, so that an interruption loses little."""
    records = json.loads(out.read_text()) if out.exists() else {}
    wanted = {**gradings(root), **programs(root)}
    tasks = {name: task for name, task in wanted.items() if only in name and name not in records}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(run_batch, root, batch) for batch in make_batches(tasks)]
        for done in concurrent.futures.as_completed(running):
            records |= done.result()
            print(f"{len(records)}/{len(wanted)} {', '.join(done.result())}", flush=True)
            partial = out.with_suffix(".partial")
            partial.write_text(json.dumps(records, indent=1, sort_keys=True))
            partial.replace(out)


def make_batches(tasks: dict[str, tuple]) -> list[dict[str, tuple]]:
    """Put up to BATCH gradings with the same options together, since each start of the grader takes seconds."""
    batches: list[dict[str, tuple]] = []
    unfinished: dict[str, dict[str, tuple]] = {}  # by their options
    for name, (kind, arguments) in tasks.items():
        options = repr(arguments[1:]) if kind == "grade" else name
        batch = unfinished.get(options)
        if batch is None or len(batch) == BATCH:
            batch = unfinished[options] = {}
            batches.append(batch)
        batch[name] = kind, arguments
    return batches


def run_batch(root: Path, batch: dict[str, tuple]) -> dict[str, dict]:
    """Return the record of each task. A grading that a batch left without a verdict is repeated alone."""
    kind, (_, *options) = next(iter(batch.values()))
    if len(batch) == 1:
        return {name: run(root, *task) for name, task in batch.items()}
    names = {str(arguments[0]): name for name, (_, arguments) in batch.items()}
    verdicts = run(root, kind, [*names, *options]).get("verdicts", [])
    found = {names[each["submission"]["path"]]: {"verdict": each} for each in verdicts}
    return found | {name: run(root, *task) for name, task in batch.items() if name not in found}


def gradings(root: Path) -> dict[str, tuple]:
    """Name of each grading -> (kind, arguments of the command line)."""
    specimens = root / "tests" / "specimens"
    expected = tomllib.loads((specimens / "expected.toml").read_text(encoding="utf-8"))
    problems = sorted(path.parent.name for path in (root / "kernels_ref").glob("*/model.py"))
    tasks = {}
    for path in sorted(specimens.glob("*.py")):
        problem = max((name for name in problems if path.stem.startswith(name)), key=len)
        seconds = expected.get(path.stem, {}).get("seconds", 30.0)
        tasks[f"specimens/{path.stem}"] = ("grade", [path, "--problem", model(root, problem), "--timeout", seconds])
    for path in sorted((root / "kernels_ref").glob("*/**/*.py")):
        problem = path.relative_to(root / "kernels_ref").parts[0]
        if path.name == "model.py" or "class ModelNew" not in path.read_text(encoding="utf-8"):
            continue
        name = "/".join(path.relative_to(root / "kernels_ref").with_suffix("").parts)
        if "/steps/" not in name:
            for old, new in RENAMED:
                name = re.sub(rf"/{old}\b|/{old}(?=_tf32)", f"/{new}", name)
        tasks[f"kernels_ref/{name}"] = ("grade", [path, "--problem", model(root, problem), "--timeout", 120])
    for path in sorted((root / "kernels_student").glob("*.py")):
        tasks[f"kernels_student/{path.stem}"] = ("grade", [path, "--timeout", 30])
    return tasks


def model(root: Path, problem: str) -> Path:
    return root / "kernels_ref" / problem / "model.py"


def programs(root: Path) -> dict[str, tuple]:
    """Name of each run of simt's command line -> (kind, arguments)."""
    found = sorted(path for path in (root / "tests" / "simt").glob("**/*.cu"))
    modes = ("run", "check", "count")
    return {
        f"simt {mode}/{'/'.join(path.relative_to(root / 'tests' / 'simt').parts)}": ("simt", [mode, path])
        for path in found
        for mode in modes
    }


@functools.cache
def can_go_without_sandbox(root: Path) -> bool:
    """Return whether a checkout refuses several submissions without a sandbox unless an option allows it."""
    texts = (path.read_text(encoding="utf-8") for path in (root / "grader").glob("cli/*.py"))
    return any("--allow-unsandboxed" in text for text in texts)


def run(root: Path, kind: str, arguments: list) -> dict:
    """Run one command of the checkout; return its exit status and its verdict or output."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "CUDA_VISIBLE_DEVICES": "",
        "COLUMNS": "200",
        "GRADER_PROGRESS": os.devnull,
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m"]
        if kind == "grade":
            verdict = Path(folder) / "verdict.json"
            command += [
                "grader",
                "grade",
                *map(str, arguments),
                "--device",
                "cpu",
                "--seed",
                str(SEED),
                "--json",
                str(verdict),
                *(["--allow-unsandboxed"] if can_go_without_sandbox(root) else []),
            ]
        else:
            command += ["simt", *map(str, arguments)]
        try:
            done = subprocess.run(
                command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=GRADE_TIMEOUT_S if kind == "grade" else PROGRAM_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return {"exit": "timeout"}
        if kind == "simt":
            return {"exit": done.returncode, "output": (done.stdout + done.stderr).replace(str(root), "ROOT")}
        verdicts = [json.loads(line) for line in verdict.read_text().splitlines()] if verdict.exists() else []
        if len(verdicts) == 1:
            return {"verdict": verdicts[0]}
        return {"verdicts": verdicts} if verdicts else {"exit": done.returncode, "output": done.stdout + done.stderr}


def compare(before: dict, after: dict) -> int:
    """Print each kind of difference of two collections once, with its count and an example; return the exit status."""
    for name in sorted(before.keys() ^ after.keys()):
        print(f"only {'before' if name in before else 'after'}: {name}")
    both = sorted(before.keys() & after.keys())
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in both:
        for kind in find_changes(lines(before[name]), lines(after[name])):
            kinds.setdefault(kind, []).append(name)
    different = {name for names in kinds.values() for name in names}
    for kind, names in sorted(
        kinds.items(), key=lambda item: (all(PROSE.search(line) for line in item[0]), -len(item[1]))
    ):
        print(f"{len(names)} times, such as {names[0]}", *kind, sep="\n")
    print(f"{len(both)} compared, {len(different)} differ, in {len(kinds)} ways")
    return 1 if different or before.keys() != after.keys() else 0


def find_changes(before: list[str], after: list[str]) -> list[tuple[str, ...]]:
    """Return the changed blocks of lines, each as its lines before (-) and after (+), with # for every number."""
    found = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for change, i, j, k, m in matcher.get_opcodes():
        if change == "equal":
            continue
        old, new = before[i:j], after[k:m]
        pairs = zip([[line] for line in old], [[line] for line in new]) if len(old) == len(new) else [(old, new)]
        for pair in pairs:
            block = [f"- {line}" for line in pair[0]] + [f"+ {line}" for line in pair[1]]
            found.append(tuple(re.sub(r"\d+", "#", line) for line in block))
    return found


def lines(record: dict) -> list[str]:
    """A record as lines of text, without what changes from run to run."""
    output = record.get("output", "")
    kept = {key: value for key, value in record.items() if key != "output"}
    text = json.dumps(stable(kept), indent=1, sort_keys=True, ensure_ascii=False) + "\n" + output
    for old, new in (*RENAMED, (r"limit_tf32", "fastest_tf32")):
        text = re.sub(rf"\b{old}(?=(_tf32)?\.py)", new, text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|seconds)\b", "TIME", text)
    return re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text).splitlines()


def stable(value):
    """The same value without times, versions, hashes and paths."""
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in TIMED and key != "measurements"}
    if isinstance(value, list):
        return [stable(inner) for inner in value]
    return value


if __name__ == "__main__":
    main()
