"""Make Python classes of the members that an extension binds with py::class_."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simt.runtime.torch_graphs import record

HELD = "_simt_value"  # the attribute that holds an object's C++ value (simt/src/process/bind.cpp)
NONE, START, METHOD, STATIC, GETTER, SETTER = range(6)  # Function::Member in simt/include/simt/function.h


def collect(bound: dict[str, Any], classes: dict[str, Callable]) -> dict[str, Any]:
    """Return what an extension binds, its members of classes collected in a class each.

    classes: gets, for the C++ type of each class, the function that makes an object of a C++ value.
    """
    found: dict[str, Any] = {}
    members: dict[tuple[str, str], list[tuple[int, str, Callable]]] = {}
    for name, value in bound.items():
        member = getattr(value, "member", None)
        if member is None:
            found[name] = value
        else:
            owner, kind, number = member
            members.setdefault((owner, kind), []).append((number, name.removeprefix(f"{owner}."), value))
    for (owner, kind), listed in members.items():
        found[owner] = _make_class(owner, listed)
        classes[kind] = _make_wrapper(found[owner])
    return found


def _make_wrapper(made: type) -> Callable[[object], object]:
    def wrap(held: object) -> object:
        one = object.__new__(made)
        setattr(one, HELD, held)
        return one

    return wrap


def _make_class(owner: str, listed: list[tuple[int, str, Callable]]) -> type:
    def refuse(self, *args: object, **kwargs: object) -> None:
        raise TypeError(f"{owner}: No constructor defined!")

    body: dict[str, Any] = {"__init__": refuse, "__module__": "simt_extension"}
    setters = {name.removesuffix("="): record(value) for number, name, value in listed if number == SETTER}
    for number, name, value in listed:
        if number == START:
            body["__init__"] = _make_start(record(value))
        elif number == METHOD:
            body[name] = _make_method(name, record(value))
        elif number == STATIC:
            body[name] = staticmethod(record(value))
        elif number == GETTER:
            body[name] = property(_make_method(name, record(value)), setters.get(name))
    return type(owner, (), body)


def _make_start(construct: Callable) -> Callable:
    def __init__(self, *args: object, **kwargs: object) -> None:
        setattr(self, HELD, getattr(construct(*args, **kwargs), HELD))

    return __init__


def _make_method(name: str, function: Callable) -> Callable:
    def method(self, *args: object, **kwargs: object) -> object:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, function.__doc__
    return method
