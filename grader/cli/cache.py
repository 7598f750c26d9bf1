"""The command `grader cache`: what the builds of this machine take on its disk, and how to be rid of them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from grader.cli.statuses import CANNOT
from grader.worker import sandbox
from simt.toolchain.cache import KINDS, Kind, free_bytes, measure
from simt.toolchain.removal import remove_tree

OTHERS = {
    "extensions": f"torch's builds of graded files: of {sandbox.KEPT}",
    "inductor": "what torch.compile made of the problems",
    "triton": "what Triton made of them",
    "ratios": "times of a GPU's baselines: of a day",
}


@click.command()
@click.option("--empty", is_flag=True, help="Remove all of it. Nothing may be graded meanwhile.")
def cache(empty: bool) -> None:
    """Show what the builds kept on this machine take on its disk.

    What is over a limit goes by itself, the longest unused first. Exit status 3 if something cannot be removed.
    """
    from rich.console import Console

    try:
        folders = list_folders()
        free = free_bytes()
    except (OSError, RuntimeError) as error:  # there is no home, or nothing can be written there
        click.echo(f"The cache folder cannot be used: {getattr(error, 'strerror', None) or error}.", err=True)
        sys.exit(CANNOT)
    sizes = {folder: measure(folder) for folder, _ in folders}
    if not empty:
        show(Console(highlight=False), folders, sizes, free)
        return
    for folder, _ in folders:
        remove_tree(folder)
    left = [folder for folder, _ in folders if folder.exists()]
    freed = sum(sizes.values()) - sum(map(measure, left))
    click.echo(f"Removed {format_bytes(freed)}. The next build on this machine takes about 30 s longer.")
    if left:
        click.echo(f"{left[0]} could not be removed: remove it as the user who owns it.", err=True)
        sys.exit(CANNOT)


def describe(kind: Kind) -> str:
    """Return what a kind's entries are and how many are kept, and how many bytes: 'linked kernels: 1000, 1 GiB'."""
    return f"{kind.what}: {kind.keep}, {kind.most_bytes >> 30} GiB"


def list_folders() -> list[tuple[Path, str]]:
    """Return the folders that are there, with what they hold. Raises RuntimeError where there is no home."""
    own = sandbox.extensions("").parent
    listed = [(sandbox.simt_cache() / name, describe(kind)) for name, kind in KINDS.items()]
    listed.append(
        (sandbox.simt_cache() / sandbox.SUBMISSIONS, f"builds of graded files: of {sandbox.KEPT}, 48 MiB each")
    )
    listed += [(own / name, what) for name, what in OTHERS.items()]
    return [(folder, what) for folder, what in listed if folder.is_dir()]


def show(console, folders: list[tuple[Path, str]], sizes: dict[Path, int], free: int) -> None:
    """Print one line for each folder, and the whole."""
    from rich.table import Table

    table = Table("folder", "what it holds, and how much at most", "size", box=None, pad_edge=False)
    table.columns[2].justify = "right"
    for folder, what in folders:
        table.add_row(folder.name, what, format_bytes(sizes[folder]))
    table.add_row("", "", format_bytes(sum(sizes.values())), style="bold")
    console.print(table)
    console.print(f"in {sandbox.simt_cache()} and {sandbox.extensions('').parent}; free there: {format_bytes(free)}")


def format_bytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.1f} MiB"
