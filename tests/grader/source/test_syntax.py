"""Is a source parsed although Python, confused by another thread, refuses it now and then?"""

import ast

import pytest

from grader.source import syntax


def refusing(times):
    """ast.parse, but for so many calls at first."""
    calls, right = [], ast.parse

    def parse(*arguments):
        calls.append(arguments)
        if len(calls) <= times:
            raise SystemError("AST constructor recursion depth mismatch (before=156, after=22)")
        return right(*arguments)

    return parse


@pytest.mark.parametrize("times", [0, 1, 2])
def test_it_is_tried_again(monkeypatch, times):
    monkeypatch.setattr(syntax.ast, "parse", refusing(times))
    assert ast.dump(syntax.parse("x = 1\n", "name")) == ast.dump(compile("x = 1\n", "name", "exec", ast.PyCF_ONLY_AST))


def test_not_for_ever(monkeypatch):
    monkeypatch.setattr(syntax.ast, "parse", refusing(9))
    with pytest.raises(SystemError):
        syntax.parse("x = 1\n")


def test_the_syntax_error_is_reported():
    with pytest.raises(SyntaxError) as raised:
        syntax.parse("x = (", "name.py")
    assert raised.value.filename == "name.py"


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_lines_are_those_of_python(mark):
    """Is a form feed between functions, or another mark in a comment, no line of its own?"""
    text = f"x = 1\n{mark if mark == chr(12) else '#' + mark}\ny = 2\r\nz = 3\rw = 4\n"
    (*_, last) = ast.parse(text).body
    assert syntax.split_lines(text)[last.lineno - 1] == "w = 4" and len(syntax.split_lines(text)) == 5


def test_ends_of_texts():
    assert [syntax.split_lines(text) for text in ("", "a", "a\n", "a\n\n")] == [[], ["a"], ["a"], ["a", ""]]
