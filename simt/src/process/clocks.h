// The clocks that a program reads.
#pragma once

namespace simt {

void vary_clocks(bool vary);  // whether each look at a clock adds to it

}  // namespace simt
