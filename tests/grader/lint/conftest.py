"""Fixtures of lint's tests."""

import textwrap

import pytest
import torch

from grader.lint import run
from grader.problems import problem


@pytest.fixture(autouse=True)
def one_thread():
    """Small cases: a second thread only waits for the first."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def read(tmp_path):
    """A function that writes a problem file and reads it."""

    def read(text):
        path = tmp_path / "planted.py"
        path.write_text("import torch\nimport torch.nn as nn\n\n\n" + textwrap.dedent(text).lstrip("\n"))
        return problem.read(path)

    return read


@pytest.fixture
def lint(read):
    """A function that lints the text of a problem file."""
    return lambda text: run.lint(read(text))
