// Stands in for cub's cub/device/device_merge.cuh.
#pragma once
#include <simt/cub_device.h>
