// Stands in for helper_timer.h of NVIDIA's samples.
#pragma once
#include <simt/samples.h>
