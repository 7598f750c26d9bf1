// Declares the check of a launch against the limits of the device.
#pragma once

#include <string>

#include "run/worker.h"

namespace simt {

// Returns the reason why this launch is refused, or an empty string. Sets `code` to the CUDA error.
std::string refusal(const Launch& launch, const Job& job, int& code);

}  // namespace simt
