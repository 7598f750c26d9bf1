// cub::DeviceHistogram: samples in rows, of one channel or of several interleaved ones.
#pragma once

#include <array>

#include <simt/cub_device_call.h>

namespace cub {

namespace detail {

// The samples of an image: rows of `width` pixels, of which each has `channels` samples; row_bytes from row to row.
struct Image {
  long long width, height;
  std::size_t row_bytes;
};

// Clears the histogram of one channel and counts its samples. find_bin returns a bin, or a number outside.
template <int channels, class In, class Counter, class F>
void count_channel(In in, const Image& image, int channel, Counter* bins, int count, const F& find_bin) {
  for (int i = 0; i < count; ++i) bins[i] = 0;
  using T = simt::value_of<In>;
  for (long long y = 0; y < image.height; ++y)
    for (long long x = 0; x < image.width; ++x) {
      const long long at = y * (long long)(image.row_bytes / sizeof(T)) + x * channels + channel;
      const long long bin = find_bin((T)in[at]);
      if (bin >= 0 && bin < count) ++bins[bin];
    }
}

// Bins of one width from lower to upper.
template <class Level>
struct EvenBins {
  Level lower, upper;
  int bins;
  template <class T>
  long long operator()(T sample) const {
    using Common = std::common_type_t<T, Level>;
    const Common value = (Common)sample, low = (Common)lower, high = (Common)upper;
    if (!(value >= low && value < high)) return -1;
    if constexpr (std::is_integral_v<Common>) {
      return (long long)((unsigned __int128)(value - low) * (unsigned)bins / (unsigned long long)(high - low));
    } else {
      return (long long)((value - low) * ((Common)bins / (high - low)));
    }
  }
};
// Bins between levels, which lie in device memory in ascending order.
template <class Level>
struct RangeBins {
  const Level* levels;
  int count;
  template <class T>
  long long operator()(T sample) const {
    return simt::bisect(levels, count, [&](const Level& level) { return !((Level)sample < level); }) - 1;
  }
};

template <int channels, int active, class In, class Counter, class Bins>
cudaError_t count_image(const DeviceCall& call, In in, std::array<Counter*, active> histograms,
                        std::array<int, active> levels, std::array<Bins, active> bins, Image image) {
  auto body = [=] {
    for (int c = 0; c < active; ++c)
      count_channel<channels>(in, image, c, histograms[(std::size_t)c], levels[(std::size_t)c] - 1,
                              bins[(std::size_t)c]);
  };
  return run(call, room_for_tiles(0), body, in, histograms[0]);
}

template <std::size_t n, class T, class From>
std::array<T, n> to_array(const From& from) {
  std::array<T, n> all;
  for (std::size_t i = 0; i < n; ++i) all[i] = from[i];
  return all;
}

}  // namespace detail

struct DeviceHistogram {
  template <class In, class Counter, class Level, detail::Count N>
  static cudaError_t HistogramEven(SIMT_CUB_TEMP, In d_samples, Counter* d_histogram, int num_levels, Level lower_level,
                                   Level upper_level, N num_samples, SIMT_CUB_END) {
    return even(SIMT_CUB_CALL("DeviceHistogram::HistogramEven", names), d_samples, d_histogram, num_levels, lower_level,
                upper_level, {(long long)num_samples, 1, 0});
  }
  template <class In, class Counter, class Level, detail::Count N>
  static cudaError_t HistogramEven(SIMT_CUB_TEMP, In d_samples, Counter* d_histogram, int num_levels, Level lower_level,
                                   Level upper_level, N num_row_samples, N num_rows, std::size_t row_stride_bytes,
                                   SIMT_CUB_END) {
    return even(SIMT_CUB_CALL("DeviceHistogram::HistogramEven", names), d_samples, d_histogram, num_levels, lower_level,
                upper_level, {(long long)num_row_samples, (long long)num_rows, row_stride_bytes});
  }
  template <int NUM_CHANNELS, int NUM_ACTIVE_CHANNELS, class In, class Histograms, class Counts, class Levels,
            detail::Count N>
  static cudaError_t MultiHistogramEven(SIMT_CUB_TEMP, In d_samples, const Histograms& d_histogram,
                                        const Counts& num_levels, const Levels& lower_level, const Levels& upper_level,
                                        N num_pixels, SIMT_CUB_END) {
    using Counter = std::remove_pointer_t<std::decay_t<decltype(d_histogram[0])>>;
    using Level = std::decay_t<decltype(lower_level[0])>;
    std::array<detail::EvenBins<Level>, NUM_ACTIVE_CHANNELS> bins;
    for (int c = 0; c < NUM_ACTIVE_CHANNELS; ++c)
      bins[(std::size_t)c] = {lower_level[c], upper_level[c], num_levels[c] - 1};
    return detail::count_image<NUM_CHANNELS, NUM_ACTIVE_CHANNELS>(
        SIMT_CUB_CALL("DeviceHistogram::MultiHistogramEven", names), d_samples,
        detail::to_array<NUM_ACTIVE_CHANNELS, Counter*>(d_histogram),
        detail::to_array<NUM_ACTIVE_CHANNELS, int>(num_levels), bins, {(long long)num_pixels, 1, 0});
  }
  template <class In, class Counter, class Level, detail::Count N>
  static cudaError_t HistogramRange(SIMT_CUB_TEMP, In d_samples, Counter* d_histogram, int num_levels,
                                    const Level* d_levels, N num_samples, SIMT_CUB_END) {
    return range(SIMT_CUB_CALL("DeviceHistogram::HistogramRange", names), d_samples, d_histogram, num_levels, d_levels,
                 {(long long)num_samples, 1, 0});
  }
  template <class In, class Counter, class Level, detail::Count N>
  static cudaError_t HistogramRange(SIMT_CUB_TEMP, In d_samples, Counter* d_histogram, int num_levels,
                                    const Level* d_levels, N num_row_samples, N num_rows, std::size_t row_stride_bytes,
                                    SIMT_CUB_END) {
    return range(SIMT_CUB_CALL("DeviceHistogram::HistogramRange", names), d_samples, d_histogram, num_levels, d_levels,
                 {(long long)num_row_samples, (long long)num_rows, row_stride_bytes});
  }
  template <int NUM_CHANNELS, int NUM_ACTIVE_CHANNELS, class In, class Histograms, class Counts, class Levels,
            detail::Count N>
  static cudaError_t MultiHistogramRange(SIMT_CUB_TEMP, In d_samples, const Histograms& d_histogram,
                                         const Counts& num_levels, const Levels& d_levels, N num_pixels, SIMT_CUB_END) {
    using Counter = std::remove_pointer_t<std::decay_t<decltype(d_histogram[0])>>;
    using Level = std::remove_cv_t<std::remove_pointer_t<std::decay_t<decltype(d_levels[0])>>>;
    std::array<detail::RangeBins<Level>, NUM_ACTIVE_CHANNELS> bins;
    for (int c = 0; c < NUM_ACTIVE_CHANNELS; ++c) bins[(std::size_t)c] = {d_levels[c], num_levels[c]};
    return detail::count_image<NUM_CHANNELS, NUM_ACTIVE_CHANNELS>(
        SIMT_CUB_CALL("DeviceHistogram::MultiHistogramRange", names), d_samples,
        detail::to_array<NUM_ACTIVE_CHANNELS, Counter*>(d_histogram),
        detail::to_array<NUM_ACTIVE_CHANNELS, int>(num_levels), bins, {(long long)num_pixels, 1, 0});
  }

 private:
  static constexpr const char* names = "d_samples,d_histogram";

  template <class In, class Counter, class Level>
  static cudaError_t even(const detail::DeviceCall& call, In in, Counter* histogram, int levels, Level lower,
                          Level upper, detail::Image image) {
    return detail::count_image<1, 1>(call, in, std::array<Counter*, 1>{histogram}, std::array<int, 1>{levels},
                                     std::array<detail::EvenBins<Level>, 1>{{{lower, upper, levels - 1}}}, image);
  }
  template <class In, class Counter, class Level>
  static cudaError_t range(const detail::DeviceCall& call, In in, Counter* histogram, int count, const Level* levels,
                           detail::Image image) {
    return detail::count_image<1, 1>(call, in, std::array<Counter*, 1>{histogram}, std::array<int, 1>{count},
                                     std::array<detail::RangeBins<Level>, 1>{{{levels, count}}}, image);
  }
};

}  // namespace cub
