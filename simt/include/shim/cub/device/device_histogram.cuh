// Stands in for cub's cub/device/device_histogram.cuh.
#pragma once
#include <simt/cub_device.h>
