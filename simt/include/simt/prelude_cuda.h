// What a program's units include, precompiled: CUDA's names, which nvcc gives every .cu file too, and <iostream>, which
// most have. No more: names of other headers (std::count, std::reduce, …) would get in the way of a program's own.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <simt/cuda.h>
