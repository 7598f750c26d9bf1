// Stands in for cub's cub/device/device_for.cuh.
#pragma once
#include <simt/cub_device.h>
