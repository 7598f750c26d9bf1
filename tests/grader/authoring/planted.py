"""Ways to disguise the answer of an exercise, and places to hide it, made without the code that looks for it."""

import base64
import gzip
import io
import json
import py_compile
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from grader.paths import KERNELS_REF

ANSWER = re.search(  # what stands between the marks
    r"about 17 lines\)\n(.*?)\n    // <<<", (KERNELS_REF / "conv2d" / "solution.py").read_text(encoding="utf-8"), re.S
)[1]
NAMES = "x weight bias y total C H W OC KH KW OH OW i ox oy oc n sum c ky x_row w_row kx".split()


def rename(text: str) -> str:
    """Give every variable of the answer another name."""
    words = {name: f"{'abcdefgh'[at % 8]}{at}_" for at, name in enumerate(NAMES)}
    return re.sub(r"(?<!\.)\b\w+\b", lambda match: words.get(match[0], match[0]), text)


def strip(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


DISGUISES: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "renamed": rename,
    "on one line": lambda text: " ".join(strip(text).split()),
    "a token a line": lambda text: re.sub(r"\s+|(?<=\W)|(?=\W)", "\n", strip(text)).replace("+\n+", "++"),
    "without spaces": lambda text: re.sub(r" *([-+*/%=<>(),;{}\[\]]) *", r"\1", strip(text)),
    "braces of another style": lambda text: strip(text).replace(" {", "\n{").replace("}", "\n\n}"),
    "other types": lambda text: text.replace("float", "double").replace("int64_t", "int").replace("const ", ""),
    "other comments": lambda text: text.replace(";", "; // so\n").replace("(", "/* and */ ("),
    "commented out": lambda text: "\n".join(f"    // {line}" for line in strip(text).split("\n")),
    "commented out in Python": lambda text: "\n".join(f"# {line}" for line in strip(text).split("\n")),
    "in a block comment": lambda text: f"/*\n{text}\n*/",
    "a literal of Python": lambda text: f"source = {text!r}",
    "a literal of JSON": lambda text: f"source = {json.dumps(text)}",
    "literals of its lines": lambda text: "\n".join(f'    "{line}\\n"' for line in text.split("\n")),
    "a diff": lambda text: "".join(f"+{line}\n" for line in strip(text).split("\n")),
    "all at once": lambda text: f"# {' '.join(strip(rename(text)).replace('float', 'double').split())}",
}


def make_cell(source: str, **more: object) -> dict[str, object]:
    lines = source.splitlines(keepends=True)
    return {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "source": lines, **more}


def write_notebook(folder: Path, *cells: dict[str, object]) -> None:
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}
    (folder / "lesson.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def _show(text: str) -> dict[str, object]:
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def _zip(text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/it.py", text)
    return made.getvalue()


def _tar(text: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        info = tarfile.TarInfo("it.py")
        info.size = len(text.encode())
        archive.addfile(info, io.BytesIO(text.encode()))
    return made.getvalue()


def _compile(folder: Path, text: str) -> None:
    (folder / "it.py").write_text(f"source = {text!r}\n", encoding="utf-8")
    py_compile.compile(str(folder / "it.py"), str(folder / "it.pyc"))
    (folder / "it.py").unlink()


def _commit(folder: Path, text: str, packed: bool) -> None:
    """Commit a file and remove it in the next commit."""

    def git(*command: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=folder, check=True)

    git("init", "-q")
    (folder / "it.py").write_text(text, encoding="utf-8")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    git("rm", "-q", "it.py")
    git("commit", "-q", "-m", "two")
    if packed:
        git("gc", "-q")


HIDDEN: dict[str, tuple[Callable[[Path, str], object], str]] = {  # what writes it -> what the place's name contains
    "a backup file": (lambda folder, text: (folder / "conv2d.py~").write_text(text), "conv2d.py~"),
    "a hidden cell": (
        lambda folder, text: write_notebook(
            folder, make_cell("1"), make_cell(text, metadata={"jupyter": {"source_hidden": True}})
        ),
        "lesson.ipynb, cell 2",
    ),
    "an output": (
        lambda folder, text: write_notebook(folder, make_cell("1", outputs=[_show(text)])),
        "lesson.ipynb, cell 1, output",
    ),
    "a cell's metadata": (
        lambda folder, text: write_notebook(folder, make_cell("1", metadata={"note": [{"old": text}]})),
        "metadata",
    ),
    "an attachment": (
        lambda folder, text: write_notebook(
            folder,
            make_cell("1", attachments={"a.txt": {"text/plain": base64.b64encode(text.encode()).decode()}}),
        ),
        "base64",
    ),
    "a cell whose tag is not a tag": (
        lambda folder, text: write_notebook(folder, make_cell(text, metadata={"tags": "teaches-conv2d"})),
        "cell 1",
    ),
    "a zip": (lambda folder, text: (folder / "a.bin").write_bytes(_zip(text)), "a.bin, in it in/it.py"),
    "a tar": (lambda folder, text: (folder / "a.tgz").write_bytes(_tar(text)), "it.py"),
    "a gz": (lambda folder, text: (folder / "a.gz").write_bytes(gzip.compress(text.encode())), "a.gz"),
    "a zip in base64": (
        lambda folder, text: (folder / "a.txt").write_bytes(b"see\n" + base64.encodebytes(_zip(text))),
        "a.txt, decoded from base64",
    ),
    "UTF-16": (lambda folder, text: (folder / "a.txt").write_text(text, encoding="utf-16"), "a.txt"),
    "a compiled file": (_compile, "it.pyc"),
    "git's history": (lambda folder, text: _commit(folder, text, packed=False), ".git/objects"),
    "git's pack": (lambda folder, text: _commit(folder, text, packed=True), ".pack"),
}
