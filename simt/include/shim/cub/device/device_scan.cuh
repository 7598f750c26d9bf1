// Stands in for cub's cub/device/device_scan.cuh.
#pragma once
#include <simt/cub_device.h>
