"""What a notebook calls: checks, profiles, %%cuda."""
