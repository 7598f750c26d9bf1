// Included before everything else: see simt/prelude.h.
