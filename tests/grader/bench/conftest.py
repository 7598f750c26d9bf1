"""Fixtures of the tests of backward and sweep."""

from pathlib import Path

import pytest

from grader.bench import children
from tests.grader import scaffold
from tests.grader.bench.modes import Here

problem = scaffold.problem


@pytest.fixture
def write(tmp_path):
    """Writes submissions, one a name, and gives their paths."""

    def made(**sources: str) -> list[Path]:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        return [tmp_path / f"{name}.py" for name in sources]

    return made


@pytest.fixture
def here(monkeypatch):
    """Children in this process; they that were started."""
    monkeypatch.setattr(children, "Child", Here)
    monkeypatch.setattr(Here, "started", [])
    return Here.started
