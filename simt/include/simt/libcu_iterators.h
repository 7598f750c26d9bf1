// libcu++'s iterators that compute their elements, which are thrust's.
#pragma once

#include <simt/thrust_iterators.h>

namespace cuda {

using thrust::constant_iterator;
using thrust::counting_iterator;
using thrust::discard_iterator;
using thrust::make_constant_iterator;
using thrust::make_counting_iterator;
using thrust::make_discard_iterator;
using thrust::make_permutation_iterator;
using thrust::make_transform_iterator;
using thrust::make_zip_iterator;

}  // namespace cuda
