"""The command `grader fastest`."""

from __future__ import annotations

import sys

import click

from grader.cli.statuses import CANNOT, FAILED, PASSED


@click.command()
@click.option(
    "--check", is_flag=True, help="Write nothing; exit status 1 if a fastest file is not what its pieces make."
)
def fastest(check: bool) -> None:
    """Generate kernels_ref/PROBLEM/fastest*.py from the pieces in kernels_ref/PROBLEM/fastest and kernels_ref/shared.

    Exit status 2 if the pieces cannot be assembled, 3 if a file cannot be read or written.
    """
    from grader.authoring import assemble

    try:
        generated = assemble.assemble_all()
        outdated = assemble.find_outdated(generated)
        for path in outdated:
            if not check:
                path.write_text(generated[path], encoding="utf-8")
            name = f"{path.parent.name}/{path.name}"
            click.echo(f"{name} is not what its pieces make: run `grader fastest`." if check else f"written: {name}")
    except assemble.AssemblyError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        click.echo(f"{error.filename} cannot be read or written ({error.strerror}).", err=True)
        sys.exit(CANNOT)
    sys.exit(FAILED if check and outdated else PASSED)
