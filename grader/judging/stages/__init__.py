"""The stages of a grading, one a file; each has `run(context, stage)`, which fills the stage's result.

A result is filled, not returned: what a stage wrote until an interrupt or an error stays in the verdict. A stage that
returns has passed unless it set another status; a FindingError that it raises fails it.
"""
