"""grader.check in a real IPython kernel: is an interrupt one sentence, is a cell's class checked, is the bar gone at
the end?
"""

import threading
from pathlib import Path

import pytest
import torch
from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).resolve().parents[3]
SPECIMENS = ROOT / "tests" / "specimens"

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the verdicts are those of a machine without a GPU")


@pytest.fixture(scope="module")
def kernel():
    """A kernel with grader imported, and a function that runs a cell and returns its messages."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT))

    def run(cell: str, interrupt: float = 0.0) -> list[tuple[str, dict]]:
        outputs: list[tuple[str, dict]] = []
        timer = threading.Timer(interrupt, manager.interrupt_kernel)
        if interrupt:
            timer.start()
        client.execute_interactive(
            cell, timeout=120, output_hook=lambda message: outputs.append((message["msg_type"], message["content"]))
        )
        timer.cancel()
        return outputs

    run(
        f"import sys, os; sys.path.insert(0, {str(ROOT)!r}); os.environ['XDG_STATE_HOME'] = '/nonexistent'; "
        "import grader, torch"  # torch here: an interrupt in the middle of its import would leave half of it
    )
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_interrupt(kernel):
    """Is an interrupted check an error of one sentence, with no other output left behind?"""
    outputs = kernel(
        f"grader.check({str(SPECIMENS / 'groupnorm_endless_loop.py')!r}, problem='groupnorm')", interrupt=6.0
    )
    (error,) = [content for kind, content in outputs if kind == "error"]
    assert error["traceback"] == [error["evalue"]] and error["evalue"].startswith("Interrupted: ")
    assert not [content for kind, content in outputs if kind == "stream"]


@pytest.mark.slow
def test_class_in_a_cell(kernel):
    """Is a class of the notebook graded, the wrong line named by its cell, the bar emptied, and a button shown?"""
    kernel("import torch\nimport torch.nn as nn")
    kernel(
        "class ModelNew(nn.Module):\n"
        "    problem = 'logsumexp'\n"
        "    def forward(self, x):\n"
        "        return x.frobenius(1)\n"
    )
    outputs = kernel("grader.check(ModelNew)")
    displayed = [content["data"] for kind, content in outputs if kind in ("display_data", "update_display_data")]
    (shown,) = [data for data in displayed if 'class="grader"' in data.get("text/html", "")]
    assert set(shown) == {"text/plain", "text/html"}
    assert (
        "line 4 of cell [" in shown["text/plain"]
        and "→" in shown["text/plain"]
        and "ModelNew.py" not in shown["text/plain"]
    )
    assert not [content for kind, content in outputs if kind == "execute_result"]
    htmls = [data.get("text/html") for data in displayed if data is not shown]
    bars = [html for html in htmls if html is not None]
    assert any("progressbar" in bar for bar in bars) and bars[-1] == ""
    assert "application/vnd.jupyter.widget-view+json" in displayed[-1]


@pytest.mark.slow
def test_cell_magic(kernel):
    """Does %%cuda run after %load_ext grader?"""
    outputs = kernel("%load_ext grader\n") + kernel(
        "%%cuda\n"
        "#include <cstdio>\n"
        '__global__ void k() { printf("from the kernel\\n"); }\n'
        "int main() { k<<<1, 1>>>(); cudaDeviceSynchronize(); }\n"
    )
    assert "from the kernel\n" in [content["text"] for kind, content in outputs if kind == "stream"]
