"""How a submission is timed on a GPU: workers as commands of the clock, inputs and results of each round."""
