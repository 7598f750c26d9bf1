"""Read a counted extension's machine code: decoding, control flow, arithmetic, and the list of basic blocks."""
