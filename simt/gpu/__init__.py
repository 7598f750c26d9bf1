"""load_inline on a GPU, host and device code compiled apart and at once: see simt/gpu/build.py."""
