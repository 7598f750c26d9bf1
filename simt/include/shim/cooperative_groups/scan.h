// Stands in for CUDA's cooperative_groups/scan.h.
#pragma once
#include <simt/cooperative_groups.h>
