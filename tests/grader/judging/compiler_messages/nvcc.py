"""Writes nvcc.json: what nvcc says of each source in cases.toml, or of those named. Needs nvcc and torch, no GPU; takes
some minutes.
"""

import concurrent.futures
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAID = re.compile(r"^\S*?cuda\.cu\((\d+)\): (error|warning)[^:]*: (.*)$", re.MULTILINE)
END = re.compile(r"^At end of source: (error)[^:]*: (.*)$", re.MULTILINE)
PTXAS = re.compile(r"^ptxas (error|fatal) *: (.*)$", re.MULTILINE)
GCC = re.compile(r"^\S*?cuda\.cu:(\d+):(?:\d+:)? (fatal error|error): (.*)$", re.MULTILINE)
# What torch's load_inline hands to nvcc, as far as it changes what is accepted.
FLAGS = ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__"]
FLAGS += ["-D__CUDA_NO_HALF2_OPERATORS__", "--expt-relaxed-constexpr", "-std=c++20", "-arch=sm_75"]


def main() -> None:
    cases = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))
    wanted = {name: case for name, case in cases.items() if case.get("only") != "simt"}
    old = json.loads((HERE / "nvcc.json").read_text(encoding="utf-8"))["said"] if sys.argv[1:] else {}
    asked = {name: case for name, case in wanted.items() if name not in old or name in sys.argv[1:]}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        new = dict(zip(asked, pool.map(ask, asked.values())))
    said = {name: new.get(name, old.get(name)) for name in wanted}
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    (HERE / "nvcc.json").write_text(
        json.dumps({"nvcc": version, "said": said}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    for name, lines in new.items():
        print(name, *(lines or ["accepts it"]), sep="\n    ")


def ask(case: dict) -> list[list]:
    """[line, severity, message] of each error, then of each warning; nvcc's line, severity and words."""
    import torch

    source = (
        case["cuda"]
        .removeprefix("\n")
        .replace("HOST", "torch::Tensor run(torch::Tensor x) { return x; }" if case.get("torch") else "")
    )
    root = Path(torch.__file__).parent / "include"
    headers = ["torch/types.h"] if case.get("torch") else ["cstdint", "cstdio"]
    options = [f"-I{root}", f"-I{root / 'torch/csrc/api/include'}"] + [
        word for header in headers for word in ("-include", header)
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cuda.cu"
        file.write_text(source, encoding="utf-8")
        done = subprocess.run(
            ["nvcc", *FLAGS, *options, "-c", str(file), "-o", str(Path(folder) / "cuda.o")],
            capture_output=True,
            text=True,
        )
    text = done.stdout + done.stderr
    found = [[int(line), severity, message] for line, severity, message in (*SAID.findall(text), *GCC.findall(text))]
    found += [[0, "error", message] for _, message in (*END.findall(text), *PTXAS.findall(text))]
    return sorted(found, key=lambda one: "error" not in one[1])


if __name__ == "__main__":
    main()
