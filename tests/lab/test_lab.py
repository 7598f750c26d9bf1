"""A student's way through lesson 1, in a real browser: `make lab`, a wrong kernel, its failure, the fix, Ctrl-C.

Needs Chromium (`apt-get install chromium`); skipped, with the reason, where there is none. Screenshots go into the
folder that LAB_SCREENSHOTS names, or into pytest's temporary one.
"""

import contextlib
import http.client
import json
import os
import queue
import re
import shutil
import socket
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pexpect
import psutil
import pytest

from grader.reports import progress

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

ROOT = Path(__file__).parent.parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 30_000  # ms for what takes a second or two on an idle machine
SIZE: "ViewportSize" = {"width": 1280, "height": 900}

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

SOLUTION = (ROOT / "kernels_ref" / "conv2d" / "solution.py").read_text()
RIGHT = re.search(r"// >>> exercise:[^\n]*\n(.*?)\n\s*// <<<", SOLUTION, re.DOTALL)[1]
# The slip: a row is OW long, not OH. Right for square images only.
LINE, WRONG_LINE = "const int oy = i / OW % OH;", "const int oy = i / OH % OH;"
assert LINE in RIGHT
CHECK = "grader.check("
LESSON = "lessons/01_naive_conv.ipynb"


class Lab:
    """`make lab` in a copy of the course, in a terminal of its own, with an empty home and nowhere to call."""

    def __init__(self, folder):
        self.course = folder / "course"
        self.course.mkdir()
        for name in ("lessons", "kernels_student", "kernels_ref"):
            shutil.copytree(
                ROOT / name, self.course / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
            )
        shutil.copy(ROOT / "Makefile", self.course)
        self.mine = self.course / "mine"
        self.state = folder / "state"
        self.calls = []
        environment = self.environment(folder)
        # -o: what is installed is taken as it is.
        command = ["-C", str(self.course), "-o", ".venv/.ready", "lab"]
        self.make = pexpect.spawn("make", command, env=environment, encoding="utf-8", timeout=60)
        self.make.expect(r"http://127\.0\.0\.1:\d+/\S+")
        self.address = self.make.after
        self.processes = psutil.Process(self.make.pid).children(recursive=True)

    def environment(self, folder):
        """As a student's, who is not under pytest; the kernels' build cache is the tests' own, to be quick."""
        home = folder / "home"
        # Another Python's kernel of the same name, as many homes have: the course's own must win.
        rogue = home / ".local" / "share" / "jupyter" / "kernels" / "python3"
        rogue.mkdir(parents=True)
        (rogue / "kernel.json").write_text('{"argv": ["false"], "display_name": "wrong", "language": "python"}')
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PYTEST", "JUPYTER", "GRADER", "NBVAL", "MAKE", "MFLAGS"))
        }
        outside = f"http://127.0.0.1:{self.listen()}"
        return kept | {
            "HOME": str(home),
            "XDG_CACHE_HOME": cache,
            "XDG_STATE_HOME": str(self.state),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "JUPYTER_PORT": str(free_port()),
            "BROWSER": "true",  # the command: opens nothing
            "http_proxy": outside,
            "https_proxy": outside,
            "no_proxy": "127.0.0.1,localhost",
        }

    def listen(self):
        """A proxy that only notes that something called it; its port."""
        server = socket.create_server(("127.0.0.1", 0))

        def accept():
            while True:
                caller, _ = server.accept()
                self.calls.append(caller.recv(1000))
                caller.close()

        threading.Thread(target=accept, daemon=True).start()
        return server.getsockname()[1]

    def interrupt(self):
        """Ctrl-C in its terminal; what it printed then."""
        self.processes = psutil.Process(self.make.pid).children(recursive=True)
        self.make.sendintr()
        self.make.expect(pexpect.EOF, timeout=20)
        return self.make.before


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path)
    yield made
    made.make.close(force=True)
    for process in made.processes:  # a server that did not end
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.fixture
def page():
    """The browser's, empty. `requests`: every address that it asks for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        made: Any = browser.new_page(viewport=SIZE, color_scheme="light")
        made.set_default_timeout(PATIENCE)
        made.requests = []
        made.on("request", lambda request: made.requests.append(request.url))
        yield made
        browser.close()


@pytest.fixture
def pictures(tmp_path):
    """Where screenshots go."""
    folder = Path(os.environ.get("LAB_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# --- what a student does ---------------------------------------------------------------------------------------------


def open_lesson(page, lab):
    """Until its kernel, the course's own, waits for work."""
    page.goto(lab.address)
    page.locator(".jp-NotebookPanel .jp-Toolbar-kernelName", has_text="Python 3").wait_for()
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()


def open_kernel(page):
    """kernels_student/conv2d.py, by the lesson's link at its end, which is drawn when it comes into view."""
    page.locator(".jp-NotebookPanel .jp-Notebook").focus()
    link = page.locator(".jp-NotebookPanel a", has_text="kernels_student/conv2d.py")
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    while not link.count():
        page.keyboard.press("k")
        page.wait_for_timeout(50)
    link.first.click()
    page.locator(".jp-FileEditor .cm-content").wait_for()


def show(page, tab):
    page.locator(f'.lm-DockPanel .lm-TabBar-tab:has-text("{tab}")').click()


def replace_line(page, old, new):
    """In the open file, type `new` in place of the line that has `old`, and save."""
    show(page, "conv2d.py")
    editor = page.locator(".jp-FileEditor .cm-content")
    editor.click()
    page.keyboard.press("Control+Home")
    line = editor.locator(f'.cm-line:has-text("{old}")').last
    while not line.count():  # the editor draws only the lines that are seen
        page.keyboard.press("PageDown")
        page.wait_for_timeout(50)
    line.click()
    page.keyboard.press("Home")
    page.keyboard.press("Home")  # before the indentation
    page.keyboard.press("Shift+End")
    page.keyboard.insert_text(new)
    page.keyboard.press("Control+s")
    page.locator('.lm-DockPanel .lm-TabBar-tab.jp-mod-dirty:has-text("conv2d.py")').wait_for(state="detached")


def run_cell(page, holding):
    """Run the notebook's cell that has this text, and wait until it is done; its output."""
    show(page, "01_naive_conv")
    cell = page.locator(f'.jp-NotebookPanel .jp-CodeCell:has(.cm-content:has-text("{holding}"))').first
    cell.locator(".cm-content").first.click()
    return run(page, cell)


def new_cell(page, source):
    """Below the chosen cell; its output."""
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    cell = page.locator(".jp-NotebookPanel .jp-CodeCell.jp-mod-selected")
    page.keyboard.press("Enter")
    page.keyboard.insert_text(source)
    return run(page, cell)


def fill_blank(page, name, text):
    """Write this into the blank of a cell in place of what was there, and run it; its output."""
    cells = json.loads((ROOT / "lessons" / "01_naive_conv.ipynb").read_text())["cells"]
    (source,) = ("".join(cell["source"]) for cell in cells if cell["source"][:1] == [f"%%fill {name}\n"])
    cell = page.locator(f'.jp-NotebookPanel .jp-CodeCell:has(.cm-content:has-text("%%fill {name}"))')
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source.replace("____", text))
    return run(page, cell)


def run(page, cell):
    """Its output once its number is there; the old number is wiped out first."""
    prompt = cell.locator(".jp-InputPrompt")
    prompt.evaluate("one => { one.textContent = '' }")
    page.keyboard.press("Control+Enter")
    prompt.filter(has_text=re.compile(r"\d")).wait_for(timeout=4 * PATIENCE)  # compilers may have to run
    return cell.locator(".jp-Cell-outputArea")


# --- what is looked at -----------------------------------------------------------------------------------------------


def both_themes(page):
    """In the dark and then in the light theme: the lab follows the system's."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        light = str(scheme == "light").lower()
        page.locator(f'body[data-jp-theme-light="{light}"]').wait_for(state="attached")
        page.wait_for_timeout(200)  # the style sheet
        yield scheme


def shoot(page, pictures, name, output=None):
    """Screenshots in both themes, of the window and of a cell's whole output, which must be fit to be seen in each."""
    for scheme in both_themes(page):
        if output is not None:
            output.evaluate("one => one.scrollIntoView({block: 'end'})")
            page.wait_for_timeout(100)
        page.screenshot(path=pictures / f"{name}_{scheme}.png")
        if output is not None:
            output.screenshot(path=pictures / f"{name}_output_{scheme}.png")
            assert output.evaluate(CUT_OFF) == []
            assert output.evaluate(OVERLAPPING) == []
            assert output.evaluate(FAINT) == []


# What sticks out of the output, or of a box of its own that hides it.
CUT_OFF = """area => {
    const right = area.getBoundingClientRect().right + 1, found = [];
    for (const one of area.querySelectorAll("*")) {
        const box = one.getBoundingClientRect();
        if (box.width && box.right > right) found.push(one.tagName + ": " + one.textContent.trim().slice(0, 60));
        const hides = one instanceof HTMLElement && getComputedStyle(one).overflowX !== "visible";
        if (hides && one.scrollWidth > one.clientWidth + 1)
            found.push("scrolls: " + one.textContent.trim().slice(0, 60));
    }
    for (const svg of area.querySelectorAll("svg[role=img]")) {
        const frame = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll("text")) {
            const box = text.getBoundingClientRect();
            if (box.left < frame.left - 1 || box.right > frame.right + 1
                || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
                found.push("outside its picture: " + text.textContent);
        }
    }
    return found;
}"""

# Words that lie on one another: text of a picture, or lines of the page.
OVERLAPPING = """area => {
    const found = [];
    const texts = [...area.querySelectorAll("svg[role=img] text")];
    const boxes = texts.map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
    const walk = document.createTreeWalker(area, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        if (!walk.currentNode.data.trim() || walk.currentNode.parentElement.closest("svg, .jp-OutputPrompt")) continue;
        const range = document.createRange();
        range.selectNodeContents(walk.currentNode);
        for (const box of range.getClientRects())
            if (box.width > 1 && box.height > 1) boxes.push([walk.currentNode.data.trim().slice(0, 40), box]);
    }
    for (const [i, [one, a]] of boxes.entries())
        for (const [other, b] of boxes.slice(i + 1)) {
            const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (one && other && wide > 2 && high > 0.35 * Math.min(a.height, b.height)) found.push([one, other]);
        }
    return found;
}"""

# Words with less contrast than 3 to 1 to what is behind them (WCAG's formula; pictures bring a panel of their own).
FAINT = """area => {
    const parts = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = rgb => {
        const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = rgb.slice(0, 3).map(v => linear(v / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = one => {
        for (; one; one = one.parentElement) {
            const colour = parts(getComputedStyle(one).backgroundColor);
            if (colour.length === 3 || colour[3] > 0.5) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const one of area.querySelectorAll(":not(svg *)")) {
        if (![...one.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !one.checkVisibility()) continue;
        const style = getComputedStyle(one);
        if (!style.color.startsWith("rgb")) continue;
        const [a, b] = [light(parts(style.color)), light(behind(one))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 3) found.push([one.textContent.trim().slice(0, 40), style.color]);
    }
    return found;
}"""


# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_student_fails_sees_why_fixes_it_and_passes(lab, page, pictures):
    """Can a student go from `make lab` through a failure, with its picture, to a pass, and end it all with Ctrl-C?

    One test, because two of these at once would be too much for two cores.
    """
    open_lesson(page, lab)
    shoot(page, pictures, "1_opened")

    open_kernel(page)
    replace_line(page, "// YOUR CODE HERE", RIGHT.replace(LINE, WRONG_LINE))
    shoot(page, pictures, "2_wrong_kernel")
    assert WRONG_LINE in (lab.mine / "kernels_student" / "conv2d.py").read_text()

    run_cell(page, "import grader")
    output = fill_blank(page, "each_thread", "threadIdx.x")
    assert "Every block numbers its threads from 0" in output.inner_text()
    shoot(page, pictures, "3_blank_wrong", output)
    output = fill_blank(page, "each_thread", "blockIdx.x * blockDim.x + threadIdx.x")
    assert "Right. Each thread has its own element" in output.inner_text()
    shoot(page, pictures, "3_blank_right", output)
    output = run_cell(page, CHECK)
    failed = output.inner_text()
    shoot(page, pictures, "3_failed", output)
    assert "conv2d: failed" in failed and "expected" in failed
    picture = output.locator("svg[role=img]").first
    assert len(picture.get_attribute("aria-label")) > 40
    output.get_by_text("makes the failing cases pass").first.wait_for(timeout=PATIENCE)  # the search has ended
    assert output.get_by_role("button", name="No further hint").is_disabled()  # none would say more

    replace_line(page, WRONG_LINE, "    " + LINE)
    output = run_cell(page, CHECK)
    passed = output.inner_text()
    shoot(page, pictures, "4_passed", output)
    assert "conv2d: passed" in passed and "Predicted on the" in passed
    pictures_of_pass = [one.get_attribute("aria-label") for one in output.locator("svg[role=img]").all()]
    assert len(pictures_of_pass) == 1 and pictures_of_pass[0].startswith("Your kernel is predicted")  # no failing case

    output = new_cell(page, 'grader.check("groupnorm")')
    for number in (1, 2):
        assert f"Hint {number} of" not in output.inner_text()
        output.get_by_role("button", name=re.compile("hint")).click()
        output.get_by_text(f"Hint {number} of").wait_for(timeout=PATIENCE)
    shoot(page, pictures, "5_hints", output)

    output = new_cell(page, "grader.progress()")
    shoot(page, pictures, "5_progress", output)
    core = sum(not progress.is_optional(name) for name in progress.names())
    assert f"1 of {core} exercises solved," in output.inner_text()
    assert "conv2d" in (lab.state / "grader" / "progress.json").read_text()

    a_slow_save_is_no_other_programs(lab, page)
    another_programs_change_is_noticed(lab, page)
    a_lesson_is_reset(lab, page)
    assert_no_network_request(lab, page)
    ends_with_ctrl_c(lab)


def a_slow_save_is_no_other_programs(lab, page):
    """A save requested while another is in progress waits, and then saves what was typed last: no message reports a
    changed file.
    """
    written, held = [], []

    def hold(route):
        """Lets all through but the question that follows the first save's writing."""
        if route.request.method == "PUT":
            written.append(route)
        if written and not held and route.request.method == "GET":
            held.append(route)
        else:
            route.continue_()

    page.route(re.compile(r"/api/contents/lessons/01_naive_conv\.ipynb\?"), hold)
    new_cell(page, "'typed before'")
    while not held:  # until autosave comes
        page.wait_for_timeout(50)
    new_cell(page, "'typed meanwhile'")
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1000)  # for what must not come
    assert len(written) == 1 and not page.locator(".jp-Dialog").count()
    with page.expect_response(
        lambda answer: len(written) == 2 and answer.request.method == "GET" and "01_naive_conv" in answer.url
    ):
        held[0].continue_()  # then the second save begins, writes, and asks, too
    page.unroute_all()
    text = (lab.mine / LESSON).read_text()
    assert "typed before" in text and "typed meanwhile" in text and not page.locator(".jp-Dialog").count()


def another_programs_change_is_noticed(lab, page):
    """What another program has written is not overwritten unasked."""
    notebook = lab.mine / LESSON
    # else autosave asks first
    page.locator('.lm-DockPanel .lm-TabBar-tab.jp-mod-dirty:has-text("01_naive_conv")').wait_for(state="detached")
    notebook.write_text(notebook.read_text() + "\n")
    new_cell(page, "'typed here'")
    page.keyboard.press("Control+s")
    dialog = page.locator(".jp-Dialog", has_text="has changed on disk")
    dialog.wait_for()
    assert "typed here" not in notebook.read_text()
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "01_naive_conv" in answer.url):
        dialog.get_by_role("button", name="Overwrite").click()
    assert "typed here" in notebook.read_text()


def a_lesson_is_reset(lab, page):
    """The course's own lesson is as it came, the copy is so again after a click, and what was typed is kept."""

    def sources(file):
        return [cell["source"] for cell in json.loads(file.read_text())["cells"]]

    page.locator(".jp-NotebookPanel-toolbar").get_by_text("Reset lesson").click()
    page.get_by_text("is the course's version again").first.wait_for()
    page.locator(".jp-NotebookPanel", has_text="typed here").wait_for(state="detached")
    assert sources(lab.mine / LESSON) == sources(ROOT / LESSON)
    assert "typed here" in (lab.mine / "kept" / "01_naive_conv_1.ipynb").read_text()
    for name in (LESSON, "kernels_student/conv2d.py"):
        assert (lab.course / name).read_bytes() == (ROOT / name).read_bytes()


def assert_no_network_request(lab, page):
    """Neither the page nor the server called anything but this computer."""
    assert len(page.requests) > 50
    assert [url for url in page.requests if not url.startswith((lab.address.split("/lab")[0], "data:", "blob:"))] == []
    assert lab.calls == []
    config = page.evaluate("JSON.parse(document.getElementById('jupyter-config-data').textContent)")
    assert config["news"] == {"disabled": True}


def ends_with_ctrl_c(lab):
    """One Ctrl-C ends make, the server and the kernel, without a question, an error or a process left."""
    message = lab.interrupt()
    assert "Shutting down" in message and "Error" not in message and "?" not in message
    assert len(lab.processes) >= 2  # the server, a kernel
    assert psutil.wait_procs(lab.processes, timeout=10)[1] == []


@pytest.mark.slow
def test_nothing_of_nbgraders_is_shown(lab, page):
    """nbgrader is installed for exports: are its menu, its buttons and its server's parts absent, and no warning?"""
    open_lesson(page, lab)
    assert page.locator(".lm-MenuBar-itemLabel", has_text="Help").count() == 1
    for words in ("Nbgrader", "Validate", "Create Assignment"):
        assert page.get_by_text(words, exact=True).count() == 0
    data = json.loads(page.locator("#jupyter-config-data").text_content())
    assert "@jupyter/nbgrader" in data["disabledExtensions"]
    origin = re.match(r"http://[^/]+", lab.address)[0]
    statuses = [page.request.get(f"{origin}/{name}").status for name in ("formgrader", "assignments", "courses")]
    assert statuses == [404, 404, 404]
    page.close()
    assert "nbgrader_config" not in lab.make.before + lab.interrupt()


@pytest.mark.slow
def test_ctrl_c_ends_it_while_a_page_asks(lab):
    """Does one Ctrl-C end the server while pages request files all the time, as JupyterLab's do now and then?"""
    address = urllib.parse.urlsplit(lab.address)
    token = urllib.parse.parse_qs(address.query)["token"][0]
    answers = queue.SimpleQueue()

    def ask():
        """For the same folder again and again, until the server is gone."""
        connection = http.client.HTTPConnection("127.0.0.1", address.port)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                connection.request("GET", "/api/contents/lessons", headers={"Authorization": f"token {token}"})
                answers.put(connection.getresponse().read())

    for _ in range(2):
        threading.Thread(target=ask, daemon=True).start()
    for _ in range(20):
        assert b"01_naive_conv.ipynb" in answers.get(timeout=60)
    assert "Shutting down" in lab.interrupt()
    assert psutil.wait_procs(lab.processes, timeout=10)[1] == []


FLAWED = """<style>pre { width: 200px; overflow: hidden } svg { display: block }</style>
<div style="width: 500px; color: #777; background: #888">grey on grey</div>
<div style="width: 500px; position: relative"><p style="position: absolute; margin: 0">one</p>
<p style="position: absolute; margin: 0">two</p></div>
<pre>a line that is much too long for the box that it is in</pre>
<svg role="img" width="100" height="50"><text x="60" y="20">far too long</text></svg>"""


def test_the_looks_are_checked_by_something_that_sees(page):
    """Do the three checks of an output's looks find what each is for, and nothing else?"""
    page.set_content(f'<div id="area" style="width: 600px">{FLAWED}</div>')
    area = page.locator("#area")
    assert [found.split(":")[0] for found in area.evaluate(CUT_OFF)] == ["scrolls", "outside its picture"]
    assert area.evaluate(OVERLAPPING) == [["one", "two"]]
    assert [words for words, _ in area.evaluate(FAINT)] == ["grey on grey"]
