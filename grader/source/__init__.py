"""Reading a submission without running it."""
