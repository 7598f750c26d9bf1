"""python -m simt: see simt/cli.py."""

from simt.cli import main

if __name__ == "__main__":
    main()
