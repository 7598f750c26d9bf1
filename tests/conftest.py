"""What every test shares: the same random numbers each time; tests marked gpu are skipped, with the reason, where there
is no GPU; with `--until` those left at a given time are skipped, with the reason.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs this in the background lets it ignore Ctrl-C, and what it starts too; some tests
    # press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--without-bubblewrap", action="store_true", help="run as on a machine without bubblewrap")
    parser.addoption("--until", type=int, metavar="EPOCH", help="skip the tests left at this time (`date +%s`)")


def pytest_configure(config):
    if config.getoption("--without-bubblewrap"):
        os.environ["PATH"] = _path_without("bwrap", Path(tempfile.mkdtemp(prefix="path-")))


def _path_without(program: str, folder: Path) -> str:
    """Return the PATH without one program: a folder of links replaces each folder that has it."""
    folders = []
    for entry in os.environ["PATH"].split(os.pathsep):
        if (Path(entry) / program).exists():
            links = folder / str(len(folders))
            links.mkdir()
            for file in Path(entry).iterdir():
                if file.name != program:
                    (links / file.name).symlink_to(file)
            entry = str(links)
        folders.append(entry)
    return os.pathsep.join(folders)


def gpu() -> bool:
    import torch  # a second, which tests without a GPU's do not wait for

    return torch.cuda.is_available()


if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and gpu():
    # torch keeps builds by name, and a skeleton has its solution's: two processes must not build into one folder.
    os.environ["TORCH_EXTENSIONS_DIR"] = str(Path.home() / ".cache" / "torch_extensions" / f"tests_{worker}")


@pytest.fixture(autouse=True)
def seeded():
    """A test's random numbers hang on the test alone, not on those that ran before it in the same process."""
    random.seed(0)
    if torch := sys.modules.get("torch"):  # a test that does without does not wait for it
        torch.manual_seed(0)


def pytest_collection_modifyitems(config, items):
    if until := config.getoption("--until"):
        items[:] = _begin_elsewhere(items, until)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    if not gpu():
        reason = "no CUDA device"
    elif not shutil.which("nvcc"):
        reason = "no nvcc"
    else:
        return
    for item in marked:
        item.add_marker(pytest.mark.skip(reason=reason))


def _begin_elsewhere(items: list[pytest.Item], until: int) -> list[pytest.Item]:
    """Return the tests in the same order, beginning with another file each time: no file is always the last one."""
    files = list(dict.fromkeys(item.path for item in items))
    first = until % max(1, len(files))
    rank = {file: number for number, file in enumerate(files[first:] + files[:first])}
    return sorted(items, key=lambda item: rank[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if (until := item.config.getoption("--until")) and time.time() > until:
        pytest.skip("not run: the time that --until gives was over")
