// title: Histograms by sorting, dense and sparse, and a count of words
// features: thrust, thrust_iterators
#include <iomanip>
#include <iostream>
#include <map>
#include <string>

#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/functional.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

template <typename Vector>
void print_vector(const std::string& name, const Vector& v) {
  typedef typename Vector::value_type T;
  std::cout << "  " << std::setw(20) << name << "  ";
  thrust::copy(v.begin(), v.end(), std::ostream_iterator<T>(std::cout, " "));
  std::cout << std::endl;
}

// Every bin from 0 to the largest value, by the upper bound of each value in the sorted data.
template <typename Vector1, typename Vector2>
void dense_histogram(const Vector1& input, Vector2& histogram) {
  typedef typename Vector1::value_type ValueType;
  typedef typename Vector2::value_type IndexType;
  thrust::device_vector<ValueType> data(input);
  thrust::sort(data.begin(), data.end());
  IndexType num_bins = data.back() + 1;
  histogram.resize(num_bins);
  thrust::counting_iterator<IndexType> search_begin(0);
  thrust::upper_bound(data.begin(), data.end(), search_begin, search_begin + num_bins, histogram.begin());
  thrust::adjacent_difference(histogram.begin(), histogram.end(), histogram.begin());
}

// Only the values that occur, with their counts.
template <typename Vector1, typename Vector2, typename Vector3>
void sparse_histogram(const Vector1& input, Vector2& values, Vector3& counts) {
  typedef typename Vector1::value_type ValueType;
  typedef typename Vector3::value_type IndexType;
  thrust::device_vector<ValueType> data(input);
  thrust::sort(data.begin(), data.end());
  IndexType num_bins = thrust::inner_product(data.begin(), data.end() - 1, data.begin() + 1, IndexType(1),
                                             thrust::plus<IndexType>(), thrust::not_equal_to<ValueType>());
  values.resize(num_bins);
  counts.resize(num_bins);
  thrust::reduce_by_key(data.begin(), data.end(), thrust::constant_iterator<IndexType>(1), values.begin(),
                        counts.begin());
}

__host__ __device__ bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct is_word_start {
  __host__ __device__ bool operator()(const char& left, const char& right) const {
    return is_letter(right) && !is_letter(left);
  }
};

static const char text[] =
    "A warp is a group of threads that run together. A block is a group of warps that share memory, "
    "and a grid is all blocks of one launch; none of them may rely on the order in which the others run.";

int main() {
  const int N = 400, S = 11;
  thrust::default_random_engine rng(7);
  thrust::uniform_int_distribution<int> dist(0, S - 1);
  thrust::host_vector<int> input(N);
  for (int i = 0; i < N; i++) input[i] = dist(rng) + dist(rng);

  thrust::device_vector<int> dense, values, counts;
  dense_histogram(input, dense);
  sparse_histogram(input, values, counts);
  print_vector("dense", dense);
  print_vector("values", values);
  print_vector("counts", counts);

  std::map<int, int> reference;
  for (int i = 0; i < N; i++) reference[input[i]]++;
  bool ok = values.size() == reference.size();
  thrust::host_vector<int> h_dense = dense, h_values = values, h_counts = counts;
  size_t k = 0;
  for (const auto& each : reference) {
    ok = ok && h_dense[each.first] == each.second && h_values[k] == each.first && h_counts[k] == each.second;
    k++;
  }
  ok = ok && thrust::reduce(dense.begin(), dense.end()) == N;

  thrust::device_vector<char> letters(text, text + sizeof(text) - 1);
  int words = thrust::inner_product(letters.begin(), letters.end() - 1, letters.begin() + 1, 0, thrust::plus<int>(),
                                    is_word_start());
  if (is_letter(letters.front())) words++;
  int words_ref = 0;
  for (size_t i = 0; i + 1 < sizeof(text); i++) words_ref += is_letter(text[i]) && (i == 0 || !is_letter(text[i - 1]));
  std::cout << "words: " << words << std::endl;
  ok = ok && words == words_ref;
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? 0 : 1;
}
