"""Count the work that kernels are for a GPU, and predict the time from the counters."""
