"""Why a submission is wrong: the line to blame, the cause, hints."""
