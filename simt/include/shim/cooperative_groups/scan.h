// Stands in for CUDA's cooperative_groups/scan.h.
#pragma once
#include <simt/group_scan.h>
