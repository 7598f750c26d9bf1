// Stands in for cub's cub/device/device_radix_sort.cuh.
#pragma once
#include <simt/cub_device.h>
