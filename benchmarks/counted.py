"""Counts with simt what a micro-kernel's program or a solution of kernels_ref launches. Each in a process of its own.

    python benchmarks/counted.py program NAME SIZE OUT [BLOCKS]     benchmarks/micro/NAME.cu with this argument
    python benchmarks/counted.py cases NAME OUT                     kernels_ref/NAME at the cases of references.counted_cases
    python benchmarks/counted.py full NAME OUT                      kernels_ref/NAME at full size, but for one image
    python benchmarks/counted.py step NAME OUT                      the same of a step, for example conv2d/01_naive

BLOCKS: of each launch, count this many and extrapolate; where nothing depends on what others write, the rest doesn't run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

DEVICE = "H200"
# Steps of which one image would be another launch than the whole batch: all images are counted, smaller by these sizes.
SMALL_IMAGES = {"groupnorm/01_naive": {"dim1": 2}}
# Problems without images: every block is counted, with sums that are so short and with sums twice as long.
SHORT_SUMS = {"matmul": {"K": 32}}
WEIGHTS = {"arrange_kernel"}  # kernels that work on weights alone: once, however many images there are
DEPENDENT = {"chase", "histogram"}  # programs whose kernels read addresses that an earlier kernel of theirs wrote


def _rows(report) -> list[dict]:
    """A launch's counters without its lines."""
    return [{key: value for key, value in launch.items() if key != "lines"} for launch in report.as_dict()["launches"]]


def _program(name: str, size: str, out: str, blocks: str = "0") -> None:
    import simt
    from simt import program

    built = program.make(ROOT / "benchmarks" / "micro" / f"{name}.cu", "count", (), DEVICE, lambda: None)
    chosen = {"sample": int(blocks), "partial": name not in DEPENDENT} if int(blocks) else {}
    with simt.run(device=DEVICE, seconds=300), simt.count(**chosen) as report:
        sys.stdout.flush()
        end = program.run(built, [size])
    Path(out).write_text(json.dumps(_rows(report)))
    for said in end.said:
        print(said, file=sys.stderr)
    os._exit(end.status)


def _cases(name: str, out: str) -> None:
    import references
    import simt

    simt.enable()
    file = next(f for f in references.counted() if references.name(f) == name)
    module = references.load(file)
    rows = []
    for case in references.counted_cases(file):
        run = references.prepare(file, module, case, "cpu")
        with simt.count(device=DEVICE, seconds=300) as report:
            run()
        rows += [row | {"case": case.name} for row in _rows(report)]
    Path(out).write_text(json.dumps(rows))


def _full(name: str, out: str) -> None:
    """One image at full size, every block; "factor" says how many times as large the whole launch is."""
    import references
    import simt
    import torch
    from ncu import FULL_SIZES

    simt.enable()
    file = next(f for f in references.files() if references.name(f) == name)
    module = references.load(file)
    problem = references.problem(file)
    if name in SHORT_SUMS:
        Path(out).write_text(json.dumps(_short_sums(file, module, SHORT_SUMS[name], problem.literals)))
        return
    whole = problem.literals["batch_size"]
    part = FULL_SIZES.get(file.parent.name, {"batch_size": whole})["batch_size"] // 2  # images of one round of im2col and its product
    run = references.prepare(file, module, references.full(file, batch_size=1), "cpu")
    torch.set_num_threads(2)
    with simt.count(device=DEVICE, seconds=300) as report:
        run()
    rows = _rows(report)
    for row in rows:
        row["factor"] = part if row["kernel"] in ("im2col_kernel", "matmul_kernel") else whole
    Path(out).write_text(json.dumps(rows))


def _step(name: str, out: str) -> None:
    """A row for each kernel of a step.

    Every block of one image is counted. "factor": how many images a launch has, "launches": how many there are in a run; both
    told by a run at full size, on memory that is never written and of which three blocks a launch run. "longer": how many
    times as long each thread works. "source": what the row belongs to. "twice": counted again, with sums twice as long, from
    which the counters at full size follow in a straight line, "times" that far beyond the first.
    """
    import references
    import simt

    simt.enable()
    file = next(f for f in references.files() if references.name(f) == name)
    module = references.load(file)
    literals = references.problem(file).literals
    if file.parent.parent.name in SHORT_SUMS:
        Path(out).write_text(json.dumps(_short_sums(file, module, SHORT_SUMS[file.parent.parent.name], literals)))
        return
    sizes = SMALL_IMAGES.get(name, {"batch_size": 1})
    run = references.prepare(file, module, references.full(file, **sizes), "cpu")
    with simt.count(device=DEVICE, seconds=300) as report:
        run()
    rows = {row["kernel"]: row for row in _rows(report)}
    if len(rows) != len(report.launches):
        raise RuntimeError(f"{name} launches a kernel twice for one image")
    images, whole = 1, report
    if "batch_size" in sizes:
        images = literals["batch_size"]
        with simt.count(device=DEVICE, seconds=300, sample=1, partial=True) as whole:
            references.prepare_unwritten(file, module)()
    longer = math.prod(literals[size] // small for size, small in sizes.items() if size != "batch_size")
    for kernel, row in rows.items():
        launches = sum(launch.kernel == kernel for launch in whole.launches)
        row |= {"factor": 1 if kernel in WEIGHTS else images / launches, "launches": launches, "longer": longer, "source": references.source(file)}
    Path(out).write_text(json.dumps(list(rows.values())))


def _short_sums(file: Path, module, sizes: dict[str, int], literals: dict) -> list[dict]:
    """The rows of a file of such a problem; `sizes` says how short its sums are the first time."""
    import references
    import simt

    counted = []
    for factor in (1, 2):
        run = references.prepare(file, module, references.full(file, **{name: factor * size for name, size in sizes.items()}), "cpu")
        with simt.count(device=DEVICE, seconds=300, sample=1 << 30) as report:  # all: a sample's error would be multiplied
            run()
        counted.append(_rows(report))
    (times,) = (literals[name] / size - 1 for name, size in sizes.items())
    extra = {"factor": 1, "launches": 1, "longer": 1, "source": references.source(file), "times": times}
    return [row | extra | {"twice": twice} for row, twice in zip(*counted, strict=True)]


def count(*arguments: str) -> list[dict]:
    """A row for each launch. Runs this file with these arguments, OUT put in."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        at = {"program": 3, "cases": 2, "full": 2, "step": 2}[arguments[0]]
        command = [sys.executable, __file__, *arguments[:at], file.name, *arguments[at:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.returncode}\n{done.stderr[-3000:]}")
        return json.loads(Path(file.name).read_text())


KINDS = {"program": (_program, "NAME SIZE OUT"), "cases": (_cases, "NAME OUT"), "full": (_full, "NAME OUT"), "step": (_step, "NAME OUT")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="|".join(KINDS))
    for kind, (_, words) in KINDS.items():
        takes = kinds.add_parser(kind)
        for word in words.split():
            takes.add_argument(word)
        if kind == "program":
            takes.add_argument("BLOCKS", nargs="?", type=int, default=0)
    given = vars(parser.parse_args())
    kind, name, out = given.pop("kind"), given["NAME"], Path(given["OUT"])
    known = _names(kind)
    if name not in known:
        parser.error(f"{name} is none of {', '.join(known)}.")
    if out.is_dir() or not out.parent.is_dir():  # else it would be said at the end
        parser.error(f"{out} cannot be written: it is a folder, or in none.")
    KINDS[kind][0](*given.values())


def _names(kind: str) -> list[str]:
    """What can be counted so."""
    if kind == "program":
        return sorted(file.stem for file in (ROOT / "benchmarks" / "micro").glob("*.cu"))
    import references

    return [references.name(file) for file in (references.counted() if kind == "cases" else references.files())]


if __name__ == "__main__":
    main()
