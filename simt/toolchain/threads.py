"""Run functions on several threads, or one after another where the machine allows no thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_on_threads(function: Callable[[Item], Result], items: Sequence[Item], threads: int = 2) -> list[Result]:
    """Return the function's results, in the order of the items.

    Where no thread can be started, because memory or processes are limited, this thread does what is left.
    """
    with ThreadPoolExecutor(threads) as pool:
        futures = []
        for item in items:
            try:
                futures.append(pool.submit(function, item))
            except RuntimeError:  # "can't start new thread"
                break
    return [*(future.result() for future in futures), *map(function, items[len(futures) :])]
