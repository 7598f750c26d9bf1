// Stands in for cub's cub/device/device_run_length_encode.cuh.
#pragma once
#include <simt/cub_device.h>
