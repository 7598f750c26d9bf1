// Declares functions that the parts of the counter share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "count/counter.h"

namespace simt {

// Defined in places.cpp: finds probes and basic blocks in an extension's code.
std::shared_ptr<Flow> flow_of(const Module& module);
const ProbeFunction* probes_of(const Module& module);  // null where the extension was not built for counting
std::vector<Variable> constants_of(const Module& module);
void find_text(const Module& module, std::uint64_t& low, std::uint64_t& high);  // the addresses of its machine code

}  // namespace simt
