// Stands in for helper_string.h of NVIDIA's samples.
#pragma once
#include <simt/samples.h>
