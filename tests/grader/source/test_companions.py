"""Which files next to a submission are sent with it, and which are not?"""

import os
from pathlib import Path

import pytest

from grader.source import contract
from grader.source.companions import MOST_FILES, find_companions

FILES = {
    "kernel.cu": '#include "deep/a.cuh"\n#include <torch/extension.h>\n#include "missing.h"\n',
    "deep/a.cuh": '#include "b.cuh"\n#include "../../outside.h"\n',
    "deep/b.cuh": "// b\n",
    "deep/main.cpp": "// main\n",
    "other.cu": "// of somebody else\n",
    "notes.txt": "secret\n",
    "setup.py": (
        "setup(ext_modules=[CUDAExtension('fast_ops', ['other.cu', 'notes.txt']), "
        "cpp.CppExtension(name='plain_ops', sources=['kernel.cu'])])"
    ),
}


@pytest.fixture
def folder(tmp_path) -> Path:
    inner = tmp_path / "inner"
    for name, text in FILES.items():
        (inner / name).parent.mkdir(parents=True, exist_ok=True)
        (inner / name).write_text(text)
    (tmp_path / "outside.h").write_text("// outside\n")
    return inner


def find(folder: Path, text: str):
    (folder / "submission.py").write_text(text)
    source, broken = contract.read(folder / "submission.py")
    assert broken is None
    return find_companions(source, folder)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("load('x', [os.path.join(here, 'kernel.cu')])", ["kernel.cu", "deep/a.cuh", "deep/b.cuh"]),
        ("load('x', [os.path.join(here, 'deep', 'main.cpp')])", ["deep/main.cpp"]),
        ("load('x', ['deep/main.cpp', 'missing.cu'])", ["deep/main.cpp"]),
        ("open('notes.txt'); open('../outside.h'); open('kernel')", []),
        ("open('/etc/hosts.h'); x = 'deep/../../outside.h'", []),
        ("import torch", []),
    ],
)
def test_named_files_and_what_they_include(folder, text, names):
    found = find(folder, text)
    assert list(found.texts) == names and not found.modules
    assert all(found.texts[name] == FILES[name] for name in names)


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("import fast_ops", {"fast_ops": ["other.cu"]}),
        ("from plain_ops import run", {"plain_ops": ["kernel.cu"]}),
        ("import torch, fast", {}),
    ],
)
def test_modules_of_setup(folder, text, modules):
    """Are the sources of an imported module sent, and those of others not?"""
    found = find(folder, text)
    assert found.modules == modules and set(found.texts) >= {path for paths in modules.values() for path in paths}
    assert ("other.cu" in found.texts) == ("fast_ops" in modules)


def test_links_are_not_followed(folder):
    """Is neither a link to a file outside sent, nor a file behind a link to a folder?"""
    (folder / "link.cu").symlink_to(folder.parent / "outside.h")
    os.symlink(folder.parent, folder / "up")
    assert not find(folder, "load('x', ['link.cu', 'up/outside.h'])").texts


def test_there_are_no_more_than_some(folder):
    for number in range(MOST_FILES + 5):
        (folder / f"n{number}.cu").write_text("//\n")
    names = [f"n{number}.cu" for number in range(MOST_FILES + 5)]
    assert len(find(folder, f"load('x', {names})").texts) == MOST_FILES
