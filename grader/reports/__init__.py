"""Verdicts for readers: terminal, notebook, HTML, files."""
