// cub's iterators for the inputs and outputs of its device-wide functions.
#pragma once

#include <simt/cub_values.h>
#include <simt/device_call.h>

namespace cub {

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

template <class T, class Offset = std::ptrdiff_t>
struct CountingInputIterator : simt::IteratorBase<CountingInputIterator<T, Offset>, T, T, Offset> {
  T value;
  explicit CountingInputIterator(T value = T{}) : value(value) {}
  T at(Offset n) const { return value + (T)n; }
  void move(Offset n) { value += (T)n; }
  Offset distance(const CountingInputIterator& to) const { return (Offset)(to.value - value); }
};

template <class T, class Offset = std::ptrdiff_t>
struct ConstantInputIterator : simt::IteratorBase<ConstantInputIterator<T, Offset>, T, T, Offset> {
  T value;
  Offset position;
  explicit ConstantInputIterator(T value = T{}, Offset position = 0) : value(value), position(position) {}
  T at(Offset) const { return value; }
  void move(Offset n) { position += n; }
  Offset distance(const ConstantInputIterator& to) const { return to.position - position; }
};

template <class T, class Op, class In, class Offset = std::ptrdiff_t>
struct TransformInputIterator : simt::IteratorBase<TransformInputIterator<T, Op, In, Offset>, T, T, Offset> {
  In input;
  Op op;
  TransformInputIterator(In input, Op op) : input(input), op(op) {}
  T at(Offset n) const {
    Op own = op;
    return own(input[n]);
  }
  void move(Offset n) { input += n; }
  Offset distance(const TransformInputIterator& to) const { return (Offset)(to.input - input); }
  auto raw_pointer() const { return simt::find_pointer(input); }
};

template <CacheLoadModifier MODIFIER, class T, class Offset = std::ptrdiff_t>
struct CacheModifiedInputIterator : simt::IteratorBase<CacheModifiedInputIterator<MODIFIER, T, Offset>, T, T, Offset> {
  const T* input;
  explicit CacheModifiedInputIterator(const T* input) : input(input) {}
  T at(Offset n) const { return input[n]; }
  void move(Offset n) { input += n; }
  Offset distance(const CacheModifiedInputIterator& to) const { return (Offset)(to.input - input); }
  const T* raw_pointer() const { return input; }
};

template <CacheStoreModifier MODIFIER, class T, class Offset = std::ptrdiff_t>
struct CacheModifiedOutputIterator
    : simt::IteratorBase<CacheModifiedOutputIterator<MODIFIER, T, Offset>, T, T&, Offset> {
  T* output;
  explicit CacheModifiedOutputIterator(T* output) : output(output) {}
  T& at(Offset n) const { return output[n]; }
  void move(Offset n) { output += n; }
  Offset distance(const CacheModifiedOutputIterator& to) const { return (Offset)(to.output - output); }
  T* raw_pointer() const { return output; }
};

namespace detail {
struct Discarded {
  template <class T> const Discarded& operator=(const T&) const { return *this; }
};
}  // namespace detail
template <class Offset = std::ptrdiff_t>
struct DiscardOutputIterator
    : simt::IteratorBase<DiscardOutputIterator<Offset>, detail::Discarded, detail::Discarded, Offset> {
  using discards = void;
  Offset position;
  explicit DiscardOutputIterator(Offset position = 0) : position(position) {}
  detail::Discarded at(Offset) const { return {}; }
  void move(Offset n) { position += n; }
  Offset distance(const DiscardOutputIterator& to) const { return to.position - position; }
};

template <class In, class Offset = std::ptrdiff_t, class T = simt::value_of<In>>
struct ArgIndexInputIterator : simt::IteratorBase<ArgIndexInputIterator<In, Offset, T>, KeyValuePair<Offset, T>,
                                                  KeyValuePair<Offset, T>, Offset> {
  In input;
  Offset position;
  explicit ArgIndexInputIterator(In input, Offset position = 0) : input(input), position(position) {}
  KeyValuePair<Offset, T> at(Offset n) const { return {position + n, input[position + n]}; }
  void move(Offset n) { position += n; }
  Offset distance(const ArgIndexInputIterator& to) const { return to.position - position; }
  auto raw_pointer() const { return simt::find_pointer(input); }
};

}  // namespace cub
