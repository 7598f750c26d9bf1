// Stands in for CUDA's cooperative_groups.h.
#pragma once
#include <simt/cooperative_groups.h>
