"""Time a fastest file with other constants on a GPU, such as tile sizes, next to the file as it is.

    python benchmarks/timing/variants.py scan ROWS=4,8,16 BLOCKS=3,4
    python benchmarks/timing/variants.py scan PAUSE_NS=0,20,100 --set length=1048576 --copy
    python benchmarks/timing/variants.py int8_matmul MOST_STAGES=5,8

Each CONSTANT=VALUE,… replaces the value of `constexpr int CONSTANT = …;`; all combinations are timed. Rounds are
interleaved, L2 is flushed before each run, and medians are printed, the fastest first. A variant that does not build,
or whose result is not the file's own, is reported as such. --copy adds the time that a copy of the first input takes.
"""

from __future__ import annotations

import itertools
import re
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.paths import ROOT
from grader.bench.times import EventTimer

ROUNDS = 20
FLUSHED_BYTES = 256 << 20  # more than L2 holds
DIGITS = 1e-3  # a variant may differ from the file by this part of the largest result


def replace_constants(text: str, values: dict[str, str]) -> str:
    """Return a file's text with other constants, and another name of its extension. Raises ValueError."""
    for name, value in values.items():
        text, count = re.subn(rf"(\bconstexpr \w+ {re.escape(name)} = )[^;]+;", rf"\g<1>{value};", text)
        if count == 0:
            raise ValueError(f"the file has no `constexpr int {name} = …;`")
    suffix = re.sub(r"\W", "_", "".join(f"_{name}_{value}" for name, value in values.items()))
    return re.sub(r'(\bname="\w+)"', rf'\g<1>{suffix}"', text, count=1)


def list_variants(choices: tuple[str, ...]) -> list[dict[str, str]]:
    """Return every combination of CONSTANT=VALUE,…, after the file as it is. Raises ValueError."""
    names = [choice.partition("=")[0] for choice in choices]
    values = [choice.partition("=")[2].split(",") for choice in choices]
    if not all(names) or not all(map(all, values)):
        raise ValueError("constants are given as NAME=VALUE,VALUE")
    return [{}, *(dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values) if names)]


def load(file: Path, values: dict[str, str]) -> Any:
    """Return the module that a variant makes, or the error that its build ends with."""
    module: dict[str, Any] = {"__name__": "variant"}
    try:
        exec(compile(replace_constants(file.read_text(encoding="utf-8"), values), str(file), "exec"), module)
    except Exception as error:
        return error
    return module


def is_near(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether two results differ by no more than DIGITS of the largest."""
    return bool((got.double() - expected.double()).abs().max() <= DIGITS * expected.double().abs().max())


@click.command(help=__doc__)
@click.argument("name")
@click.argument("choices", nargs=-1, metavar="[CONSTANT=VALUE,…] …")
@click.option("--set", "sizes", multiple=True, metavar="SIZE=NUMBER", help="Another size of the problem.")
@click.option("--copy", "copied", is_flag=True, help="Time a copy of the first input, too.")
def main(name: str, choices: tuple[str, ...], sizes: tuple[str, ...], copied: bool) -> None:
    if not torch.cuda.is_available():
        raise click.ClickException("Variants are timed on a GPU, and this machine has none.")
    file = ROOT / "kernels_ref" / name / "fastest.py"
    try:
        variants = list_variants(choices)
        for values in variants:
            replace_constants(file.read_text(encoding="utf-8"), values)
        changed = {size: int(value) for size, value in (one.split("=") for one in sizes)}
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error

    case = references.full(file, **changed)
    instance = references.problem(file).instantiate(case, 0, "cuda")
    with ThreadPoolExecutor() as pool:
        modules = list(pool.map(lambda values: load(file, values), variants))
    timer = EventTimer(torch.rand(FLUSHED_BYTES // 4, device="cuda").sum)
    calls, expected = {}, None
    for values, module in zip(variants, modules, strict=True):
        label = " ".join(f"{key}={value}" for key, value in values.items()) or "as it is"
        try:
            if isinstance(module, Exception):
                raise module
            model = module["ModelNew"](*instance.init_args, **instance.init_kwargs)
            with torch.no_grad():
                got = model(*instance.inputs)
            expected = got if expected is None else expected
            if not is_near(got, expected):
                raise ValueError("another result than the file as it is")
            calls[label] = lambda model=model: model(*instance.inputs)
        except Exception as error:
            print(f"{label}: {str(error).strip().splitlines()[-1][:200]}", flush=True)
    if copied:
        x = instance.inputs[0]
        target = torch.empty_like(x)
        calls["copy of the first input"] = lambda: target.copy_(x)
    times: dict[str, list[float]] = {label: [] for label in calls}
    with torch.no_grad():
        for number in range(ROUNDS + 1):
            for label, call in calls.items():
                ms = 1e3 * timer(call)
                if number:  # the first round warms up
                    times[label].append(ms)
    for label, ms in sorted(times.items(), key=lambda one: statistics.median(one[1])):
        print(f"{statistics.median(ms):.4f} ms  (least {min(ms):.4f})  {label}")


if __name__ == "__main__":
    main()
