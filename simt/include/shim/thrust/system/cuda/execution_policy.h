// Stands in for thrust's thrust/system/cuda/execution_policy.h.
#pragma once
#include <simt/thrust.h>
