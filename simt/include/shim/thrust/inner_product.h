// Stands in for thrust's thrust/inner_product.h.
#pragma once
#include <simt/thrust.h>
