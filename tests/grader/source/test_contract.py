"""Is a file that cannot be a submission refused from its text alone, and are CUDA lines found again in it?"""

import ast
import os
import threading
from pathlib import Path

import pytest

from grader.source import contract
from grader.source.contract import Source
from grader.verdict import Reason

MODEL = ast.parse(
    """
class Model(nn.Module):
    def __init__(self, channels, groups, eps=1e-5):
        pass
    def forward(self, x, y):
        return x
"""
)


def verdict_on(text: str):
    """What parse and check say of a file with this text."""
    source = Source(Path("it.py"), text, "")
    tree, broken = contract.parse(source)
    if broken is not None:
        return broken
    assert tree is not None
    return contract.check(tree, MODEL, "it.py")


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "it.py"
    path.write_bytes(data)
    return path


# --- reading ---


def test_a_missing_file_is_unreadable(tmp_path):
    _, broken = contract.read(tmp_path / "no.py")
    assert broken.reason is Reason.unreadable and "no such file" in broken.message


def test_a_folder_is_unreadable(tmp_path):
    _, broken = contract.read(tmp_path)
    assert broken.reason is Reason.unreadable and "folder" in broken.message


def test_text_that_is_not_utf8_is_unreadable_and_its_line_named(tmp_path):
    source, broken = contract.read(written(tmp_path, b"x = 1\ny = '\xe9'\n"))
    assert broken.reason is Reason.unreadable and broken.evidence.line == 2
    assert source.sha256


def test_a_byte_order_mark_is_no_harm(tmp_path):
    source, broken = contract.read(written(tmp_path, b"\xef\xbb\xbfx = 1\n"))
    assert broken is None and source.text == "x = 1\n" and source.data == b"\xef\xbb\xbfx = 1\n"


def test_a_huge_file_is_not_even_read(tmp_path):
    path = tmp_path / "it.py"
    with path.open("wb") as file:
        file.truncate(contract.MAX_BYTES + 1)
    broken = contract.read(path)[1]
    assert broken.reason is Reason.unreadable and broken.message.endswith("it is larger than 256 KiB.")


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")], ids=["a pipe", "a link to a device"]
)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make):
    """Does a pipe in the class's folder, or a device that may have no end, not hold the whole run up?"""
    path, problems = tmp_path / "it.py", []
    make(path)
    reader = threading.Thread(target=lambda: problems.append(contract.read(path)[1]), daemon=True)
    reader.start()
    reader.join(5)
    assert problems and problems[0].reason is Reason.unreadable and "not a regular file" in problems[0].message


def test_a_link_to_a_file_is_read(tmp_path):
    """Is a submission that lies elsewhere as good as one that lies here?"""
    (tmp_path / "link.py").symlink_to(written(tmp_path, b"x = 1\n"))
    source, broken = contract.read(tmp_path / "link.py")
    assert broken is None and source.text == "x = 1\n"


def test_among_several_no_link_is_followed(tmp_path):
    """Is neither a link nor a linked folder followed below the folder of a class, and a link above it no trouble?"""
    secret = written(tmp_path, b"x = 1\n")
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "it.py").write_text("y = 1\n")
    (tmp_path / "class" / "link.py").symlink_to(secret)
    (tmp_path / "class" / "bob").symlink_to(tmp_path / "class" / "ada")
    (tmp_path / "above").symlink_to(tmp_path / "class")
    for folder in (tmp_path / "class", tmp_path / "above"):
        assert contract.read(folder / "ada" / "it.py", folder)[0].text == "y = 1\n"
        for name, said in (
            ("link.py", "it is a symbolic link, and none"),
            ("bob/it.py", "its folder bob is a symbolic"),
        ):
            source, broken = contract.read(folder / name, folder)
            assert broken.reason is Reason.unreadable and said in broken.message and not source.text + source.sha256
        assert "no such file" in contract.read(folder / "none.py", folder)[1].message


@pytest.mark.parametrize("folder", [True, False])
def test_a_pipe_and_a_device_are_refused_among_several_too(tmp_path, folder):
    os.mkfifo(tmp_path / "it.py")
    assert contract.read(tmp_path / "it.py", tmp_path if folder else None)[1].reason is Reason.unreadable


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", '"""only a docstring"""\n'])
def test_a_file_without_code_is_empty(text):
    assert verdict_on(text).reason is Reason.empty_file


@pytest.mark.parametrize("text, line", [("x = 1\ndef f(:\n", 2), ("x = (1,\n", 1), ("if x:\ny = 1\n", 2)])
def test_a_syntax_error_is_reported_with_its_line(text, line):
    broken = verdict_on(text)
    assert broken.reason is Reason.syntax_error and broken.evidence.line == line
    assert f"line {line}" in broken.message


def test_braces_of_an_f_string_are_explained():
    """Is it said what braces mean in an f-string, where Python cannot parse what is between them, and nowhere else?"""
    said = contract.parse(Source(Path("x.py"), 'code = f"""\nvoid f() { int i = 0; }\n"""\n', ""))[1]
    assert said is not None and said.reason is Reason.syntax_error
    assert said.message.startswith("Python cannot parse line 2: f-string") and "{{ and }}" in said.message
    assert "?." not in said.message
    other = contract.parse(Source(Path("x.py"), "x = (1\n", ""))[1]
    assert other is not None and "f-string" not in other.message


def test_a_file_too_deep_for_the_parser_is_reported():
    """Python's own error has no text there."""
    assert (
        verdict_on("x = " + "-" * 100_000 + "1").message
        == "Python cannot parse the file: an expression is nested too deeply."
    )


@pytest.mark.parametrize("text", ["x = '\0'", "(" * 500 + ")" * 500, "x = " + "-" * 100_000 + "1"])
def test_what_breaks_the_parser_is_a_syntax_error(text):
    assert verdict_on(text).reason is Reason.syntax_error


# --- ModelNew ---

GOOD = (
    "class ModelNew(nn.Module):\n"
    "    def __init__(self, channels, groups, eps=1e-5): pass\n"
    "    def forward(self, x, y): pass\n"
)


def test_the_same_signature_is_right():
    assert verdict_on(GOOD) is None


@pytest.mark.parametrize(
    "init, forward",
    [
        ("self, c, g, e=0", "self, a, b"),
        ("self, *args, **kwargs", "self, *inputs"),
        ("self, channels, groups, eps, momentum=0.1", "self, x, y, z=None"),
        ("self, channels, groups", "self, x, y, *, fast=True"),
    ],
)
def test_any_signature_that_takes_the_calls_is_right(init, forward):
    text = f"class ModelNew(nn.Module):\n    def __init__({init}): pass\n    def forward({forward}): pass\n"
    assert verdict_on(text) is None


@pytest.mark.parametrize(
    "init, forward, sentence",
    [
        ("self, channels", "self, x, y", "no parameter for groups"),
        ("self", "self, x, y", "no parameter for channels, groups"),
        ("self, channels, groups, eps, momentum", "self, x, y", "nothing is passed for momentum"),
        ("self, groups, channels, eps=0", "self, x, y", "another order"),
        ("self, channels, groups, *, mode", "self, x, y", "nothing is passed for mode"),
        ("self, channels, groups", "self, x", "no parameter for y"),
        ("self, channels, groups", "self, x, y, z", "nothing is passed for z"),
    ],
)
def test_a_signature_that_does_not_fit_is_reported_with_its_line(init, forward, sentence):
    text = f"class ModelNew(nn.Module):\n    def __init__({init}): pass\n    def forward({forward}): pass\n"
    broken = verdict_on(text)
    assert broken.reason is Reason.bad_signature and sentence in broken.message
    assert broken.evidence.line == (2 if "__init__" in broken.message else 3)


def test_a_missing_init_is_reported_if_arguments_are_passed():
    broken = verdict_on("class ModelNew(nn.Module):\n    def forward(self, x, y): pass\n")
    assert broken.reason is Reason.bad_signature and "__init__" in broken.message


def test_a_missing_forward_is_reported():
    broken = verdict_on("class ModelNew(nn.Module):\n    def __init__(self, channels, groups): pass\n")
    assert broken.reason is Reason.bad_signature and "no method forward" in broken.message


OTHERWISE = {
    "another name": "class ModelNew(nn.Module):\n    def run(self, x, y): pass\n    forward = run\n",
    "a condition": (
        "class ModelNew(nn.Module):\n"
        "    if fast:\n"
        "        def forward(self, x, y): pass\n"
        "    else:\n"
        "        def forward(self, *x): pass\n"
    ),
    "after the class": "class ModelNew(nn.Module): pass\ndef run(self, x, y): pass\nModelNew.forward = run\n",
    "setattr": "class ModelNew(nn.Module): pass\nsetattr(ModelNew, 'forward', lambda self, x, y: x)\n",
    "in __init__": (
        "class ModelNew(nn.Module):\n    def __init__(self, channels, groups):\n        self.forward = run\n"
    ),
    "a base": "class Base(nn.Module):\n    def run(self, x, y): pass\n    forward = run\nclass ModelNew(Base): pass\n",
    "in place of another": (
        "class ModelNew(nn.Module):\n    def forward(self): pass\n    forward = lambda self, x, y: x\n"
    ),
}


@pytest.mark.parametrize("way", OTHERWISE)
def test_a_method_bound_otherwise_is_left_to_the_run(way):
    """Is nothing reported of a forward, or an __init__, that only running the file defines?"""
    assert verdict_on(OTHERWISE[way] + "ModelNew.__init__ = make\n") is None


def test_another_classs_forward_is_not_model_news():
    """Do an autograd function, and names outside classes, leave it reported that ModelNew has none?"""
    others = "class F(torch.autograd.Function):\n    def forward(ctx, x): pass\nforward = F.apply\n"
    broken = verdict_on(
        others + "class ModelNew(nn.Module):\n    def __init__(self, channels, groups):\n        forward = 1\n"
    )
    assert broken.reason is Reason.bad_signature and "no method forward" in broken.message


BODY = "\n    def __init__(self, channels, groups): pass\n    def forward(self, x, y): pass\n"


@pytest.mark.parametrize("head", ["ModelNew:", "ModelNew(object):", "ModelNew():"])
def test_a_class_that_is_no_module_is_reported_with_its_line(head):
    broken = verdict_on(f"import torch\nclass {head}{BODY}")
    assert broken.reason is Reason.bad_signature and "class ModelNew(nn.Module)" in broken.message
    assert broken.evidence.line == 2
    inherited = verdict_on(f"class Base:{BODY}class ModelNew(Base): pass\n")
    assert inherited.reason is Reason.bad_signature and inherited.evidence.line == 4


@pytest.mark.parametrize(
    "text",
    [
        f"class ModelNew:{BODY}    def __call__(self, x, y): pass\n",
        f"class Base(nn.Module): pass\nclass ModelNew(Base):{BODY}",
        f"class ModelNew(torch.jit.ScriptModule):{BODY}",
        f"@make\nclass ModelNew:{BODY}",
        f"class ModelNew(metaclass=Maker):{BODY}",
        f"class ModelNew:{BODY}ModelNew.__call__ = ModelNew.forward\n",
    ],
)
def test_a_class_that_may_be_callable_is_left_to_the_run(text):
    assert verdict_on(text) is None


def test_methods_of_a_base_class_in_the_file_count():
    assert verdict_on(GOOD.replace("ModelNew", "Base") + "class ModelNew(Base):\n    pass\n") is None


def test_a_base_class_from_elsewhere_gets_the_benefit_of_the_doubt():
    assert verdict_on("from there import Base\nclass ModelNew(Base):\n    pass\n") is None


def test_a_file_without_model_new_is_reported_with_a_similar_name():
    broken = verdict_on(GOOD.replace("ModelNew", "NewModel"))
    assert broken.reason is Reason.no_model_new and "NewModel" in broken.message


@pytest.mark.parametrize(
    "text",
    [
        "ModelNew = make()\n",
        "from there import Model as ModelNew\n",
        "def ModelNew(size):\n    return Small(size)\n",
        "if fast:\n    def ModelNew(size):\n        return Small(size)\n",
    ],
)
def test_a_model_new_that_is_not_a_class_statement_is_left_to_the_run(text):
    assert verdict_on(text) is None


NOTEBOOK = """{
 "cells": [
  {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], \
"source": ["class ModelNew(nn.Module):\\n", "    pass"]}
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""


EMPTY_NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.mark.parametrize(
    "text", [NOTEBOOK, NOTEBOOK.replace("null", "1"), NOTEBOOK.rstrip("}\n"), "\n" + NOTEBOOK, EMPTY_NOTEBOOK]
)
@pytest.mark.parametrize("name", ["it.ipynb", "it.py"])
def test_a_notebook_is_refused(text, name):
    """Is a notebook called one, whole or cut off, and does the message name what to hand in?"""
    tree, broken = contract.parse(Source(Path(name), text, ""))
    sentence = (
        f"{name} is a notebook. Put the code of its ModelNew, with imports and CUDA source, into a .py file and "
        "submit that."
    )
    assert tree is None and (broken.reason, broken.message) == (Reason.no_model_new, sentence)


def test_a_file_about_notebooks_is_none():
    """Is Python that only names a notebook's parts read as Python?"""
    assert verdict_on(GOOD + 'KEYS = {"cells": 1, "cell_type": 2, "nbformat": 4}\n') is None


# --- lines ---


def test_a_line_of_a_string_is_found_in_the_file():
    source = Source(Path("it.py"), 'import torch\ncuda = r"""\nint a;\nint b;\n"""\n', "")
    assert contract.locate(source, "\nint a;\nint b;\n", 3) == 4


def test_a_string_with_escapes_is_found_by_its_text():
    source = Source(Path("it.py"), 'cuda = "int a;\\nint b;\\n" \\\n    "int c;\\n"\n', "")
    assert contract.locate(source, "int a;\nint b;\nint c;\n", 2) == 1
    assert contract.locate(source, "int a;\nint b;\nint c;\n", 3) == 2


def test_strings_put_together_are_found_each_in_its_place():
    text = 'head = """int a;\nint same;\n"""\nbody = """int b;\nint same;\n"""\nuse(head + body)\n'
    source = Source(Path("it.py"), text, "")
    whole = "int a;\nint same;\nint b;\nint same;\n"
    assert [contract.locate(source, whole, line) for line in (1, 2, 3, 4)] == [1, 2, 4, 5]


def test_a_replaced_string_is_found_by_the_text_of_its_line():
    text = 'cuda = """\nint a = SIZE;\nint b;\n""".replace("SIZE", "4")\n'
    assert contract.locate(Source(Path("it.py"), text, ""), "\nint a = 4;\nint b;\n", 3) == 3


@pytest.mark.parametrize("line", [None, 0, 99])
def test_a_line_that_is_not_there_is_not_found(line):
    assert contract.locate(Source(Path("it.py"), 'cuda = "int a;"\n', ""), "int a;", line) is None


def test_a_text_that_occurs_twice_is_not_guessed_at():
    source = Source(Path("it.py"), "# int a;\n# x\nint a;\nint a;\n", "")
    assert contract.locate(source, "f();\nint a;\n", 2) is None


def test_code_digest():
    """Does it change with the code, and not with the text at the head nor with Python's version?"""
    code = "import torch\n\nx = 1  # one\n"
    assert {
        contract.code_digest(text) for text in (code, '"""A head."""\n\n' + code, '"""Another,\n\nlonger."""\n' + code)
    } == {"b0d1b468b0d4"}
    assert contract.code_digest(code.replace("1 ", "2 ")) != "b0d1b468b0d4"
    assert contract.code_digest("") == contract.code_digest('"""Only a head."""')
