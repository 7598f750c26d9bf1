// Stands in for cub's cub/device/device_merge_sort.cuh.
#pragma once
#include <simt/cub_device.h>
