"""Fixtures of the command line's tests."""

import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def compiled_before(tmp_path_factory):
    """What simt compiles once for itself: tests are about what comes after."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "a.cu").write_text("int main() { }\n")
    (folder / "a.py").write_text("")
    for words in (["run", "a.cu"], ["check", "a.cu"], ["count", "a.cu"], ["check", "a.py"]):
        subprocess.run(
            [sys.executable, "-m", "simt", *words], cwd=folder, capture_output=True, check=False, timeout=240
        )


@pytest.fixture
def simt(tmp_path):
    """Calls the command line in a folder of its own: simt("run", "a.cu", files={"a.cu": text})."""

    def call(*words, files=None, **options):
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        environment = {**os.environ, **options.pop("environment", {})}
        done = subprocess.run(
            [sys.executable, "-m", "simt", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=240,
            env=environment,
            **options,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return call
