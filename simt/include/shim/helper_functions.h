// Stands in for helper_functions.h of NVIDIA's samples.
#pragma once
#include <simt/samples.h>
