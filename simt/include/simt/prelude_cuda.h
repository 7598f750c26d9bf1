// Precompiled for a program's units: CUDA's names, which nvcc also provides to every .cu file, and <iostream>, which
// most use. No more: names of other headers (std::count, std::reduce, …) could conflict with the program's own.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <simt/cuda.h>
