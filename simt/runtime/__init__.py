"""Run kernels and programs: the runtime library, load_inline, options."""
