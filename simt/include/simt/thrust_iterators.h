// thrust's iterators that compute their elements or pass on to others.
#pragma once

#include <algorithm>

#include <simt/thrust_core.h>

namespace thrust {

struct use_default {};

// ---- that need no memory ----

template <class T, class System = use_default, class Traversal = use_default, class Difference = std::ptrdiff_t>
class counting_iterator
    : public simt::IteratorBase<counting_iterator<T, System, Traversal, Difference>, T, T, std::ptrdiff_t> {
 public:
  static constexpr int simt_system = 0;
  counting_iterator() = default;
  explicit counting_iterator(T value) : value_(value) {}
  const T& base() const { return value_; }
  T at(std::ptrdiff_t n) const { return (T)(value_ + (T)n); }
  void move(std::ptrdiff_t n) { value_ += (T)n; }
  std::ptrdiff_t distance(const counting_iterator& to) const {
    return (std::ptrdiff_t)to.value_ - (std::ptrdiff_t)value_;
  }

 private:
  T value_{};
};
template <class T> counting_iterator<T> make_counting_iterator(T value) { return counting_iterator<T>(value); }

template <class T, class Difference = use_default, class System = use_default>
class constant_iterator : public simt::IteratorBase<constant_iterator<T, Difference, System>, T, T> {
 public:
  static constexpr int simt_system = 0;
  constant_iterator() = default;
  explicit constant_iterator(const T& value, std::ptrdiff_t position = 0) : value_(value), position_(position) {}
  T at(std::ptrdiff_t) const { return value_; }
  void move(std::ptrdiff_t n) { position_ += n; }
  std::ptrdiff_t distance(const constant_iterator& to) const { return to.position_ - position_; }

 private:
  T value_{};
  std::ptrdiff_t position_ = 0;
};
template <class T> constant_iterator<T> make_constant_iterator(const T& value, std::ptrdiff_t position = 0) {
  return constant_iterator<T>(value, position);
}

namespace detail {
struct Discarded {
  template <class T> const Discarded& operator=(const T&) const { return *this; }
};
}  // namespace detail
template <class System = use_default>
class discard_iterator : public simt::IteratorBase<discard_iterator<System>, detail::Discarded, detail::Discarded> {
 public:
  static constexpr int simt_system = 0;
  using discards = void;
  explicit discard_iterator(std::ptrdiff_t position = 0) : position_(position) {}
  detail::Discarded at(std::ptrdiff_t) const { return {}; }
  void move(std::ptrdiff_t n) { position_ += n; }
  std::ptrdiff_t distance(const discard_iterator& to) const { return to.position_ - position_; }

 private:
  std::ptrdiff_t position_;
};
inline discard_iterator<> make_discard_iterator(std::ptrdiff_t position = 0) { return discard_iterator<>(position); }

// ---- that read or write through another ----

namespace detail {
template <class F, class It>
using mapped = std::invoke_result_t<F&, typename std::iterator_traits<unwrapped<It>>::reference>;
}
template <class F, class It, class Reference = use_default, class Value = use_default>
class transform_iterator
    : public simt::IteratorBase<transform_iterator<F, It, Reference, Value>, std::decay_t<detail::mapped<F, It>>,
                                std::decay_t<detail::mapped<F, It>>> {
  using Result = std::decay_t<detail::mapped<F, It>>;

 public:
  static constexpr int simt_system = detail::system_of<It>();
  transform_iterator() = default;
  transform_iterator(It base, F function) : base_(base), function_(function) {}
  explicit transform_iterator(It base) : base_(base), function_() {}
  const It& base() const { return base_; }
  F functor() const { return function_; }
  Result at(std::ptrdiff_t n) const {
    F own = function_;
    if constexpr (std::is_invocable_v<F&, decltype(base_[n])>)
      return own(base_[n]);
    else
      return own(static_cast<simt::value_of<It>>(base_[n]));
  }
  void move(std::ptrdiff_t n) { base_ += n; }
  std::ptrdiff_t distance(const transform_iterator& to) const { return to.base_ - base_; }
  auto raw_pointer() const { return simt::find_pointer(base_); }
  auto simt_unwrapped() const { return transform_iterator<F, detail::unwrapped<It>>(detail::unwrap(base_), function_); }

 private:
  It base_{};
  F function_;
};
template <class F, class It> transform_iterator<F, It> make_transform_iterator(It base, F function) {
  return {base, function};
}

template <class It, class Map>
class permutation_iterator : public simt::IteratorBase<permutation_iterator<It, Map>, simt::value_of<It>,
                                                       typename std::iterator_traits<It>::reference> {
 public:
  static constexpr int simt_system = detail::system_of<It>() > detail::system_of<Map>() ? detail::system_of<It>()
                                                                                        : detail::system_of<Map>();
  permutation_iterator() = default;
  permutation_iterator(It elements, Map map) : elements_(elements), map_(map) {}
  const Map& base() const { return map_; }
  typename std::iterator_traits<It>::reference at(std::ptrdiff_t n) const {
    return elements_[(std::ptrdiff_t)static_cast<simt::value_of<Map>>(map_[n])];
  }
  void move(std::ptrdiff_t n) { map_ += n; }
  std::ptrdiff_t distance(const permutation_iterator& to) const { return to.map_ - map_; }
  auto raw_pointer() const { return simt::find_pointer(elements_); }
  auto simt_unwrapped() const {
    return permutation_iterator<detail::unwrapped<It>, detail::unwrapped<Map>>(detail::unwrap(elements_),
                                                                               detail::unwrap(map_));
  }

 private:
  It elements_{};
  Map map_{};
};
template <class It, class Map> permutation_iterator<It, Map> make_permutation_iterator(It elements, Map map) {
  return {elements, map};
}

template <class It>
class reverse_iterator : public simt::IteratorBase<reverse_iterator<It>, simt::value_of<It>,
                                                   typename std::iterator_traits<It>::reference> {
 public:
  static constexpr int simt_system = detail::system_of<It>();
  reverse_iterator() = default;
  explicit reverse_iterator(It base) : base_(base) {}
  It base() const { return base_; }
  typename std::iterator_traits<It>::reference at(std::ptrdiff_t n) const { return base_[-1 - n]; }
  void move(std::ptrdiff_t n) { base_ -= n; }
  std::ptrdiff_t distance(const reverse_iterator& to) const { return base_ - to.base_; }
  auto raw_pointer() const { return simt::find_pointer(base_); }
  auto simt_unwrapped() const { return reverse_iterator<detail::unwrapped<It>>(detail::unwrap(base_)); }

 private:
  It base_{};
};
template <class It> reverse_iterator<It> make_reverse_iterator(It base) { return reverse_iterator<It>(base); }

// Passes what is assigned to it through a function.
namespace detail {
template <class F, class It>
struct Assigner {
  It base;
  F function;
  template <class T> const Assigner& operator=(const T& value) const {
    F own = function;
    *base = own(value);
    return *this;
  }
};
}  // namespace detail
template <class F, class It>
class transform_output_iterator
    : public simt::IteratorBase<transform_output_iterator<F, It>, detail::Assigner<F, It>, detail::Assigner<F, It>> {
 public:
  static constexpr int simt_system = detail::system_of<It>();
  using discards = void;  // it has no value type: the function takes what is assigned
  transform_output_iterator(It base, F function) : base_(base), function_(function) {}
  detail::Assigner<F, It> at(std::ptrdiff_t n) const { return {base_ + n, function_}; }
  void move(std::ptrdiff_t n) { base_ += n; }
  std::ptrdiff_t distance(const transform_output_iterator& to) const { return to.base_ - base_; }
  auto raw_pointer() const { return simt::find_pointer(base_); }
  auto simt_unwrapped() const {
    return transform_output_iterator<F, detail::unwrapped<It>>(detail::unwrap(base_), function_);
  }

 private:
  It base_;
  F function_;
};
template <class It, class F> transform_output_iterator<F, It> make_transform_output_iterator(It base, F function) {
  return {base, function};
}

// ---- several at once ----

template <class Its>
class zip_iterator;
template <class... It>
class zip_iterator<std::tuple<It...>>
    : public simt::IteratorBase<zip_iterator<std::tuple<It...>>, std::tuple<simt::value_of<It>...>,
                                std::tuple<typename std::iterator_traits<It>::reference...>> {
  using Reference = std::tuple<typename std::iterator_traits<It>::reference...>;

 public:
  static constexpr int simt_system = std::max({0, detail::system_of<It>()...});
  zip_iterator() = default;
  zip_iterator(std::tuple<It...> iterators) : iterators_(iterators) {}
  const std::tuple<It...>& get_iterator_tuple() const { return iterators_; }
  Reference at(std::ptrdiff_t n) const {
    return std::apply([n](const auto&... each) { return Reference(each[n]...); }, iterators_);
  }
  void move(std::ptrdiff_t n) {
    std::apply([n](auto&... each) { ((each += n), ...); }, iterators_);
  }
  std::ptrdiff_t distance(const zip_iterator& to) const { return std::get<0>(to.iterators_) - std::get<0>(iterators_); }
  auto raw_pointer() const { return simt::find_pointer(std::get<0>(iterators_)); }
  auto simt_unwrapped() const {
    return std::apply(
        [](const auto&... each) {
          return zip_iterator<std::tuple<detail::unwrapped<It>...>>(
              std::tuple<detail::unwrapped<It>...>(detail::unwrap(each)...));
        },
        iterators_);
  }

 private:
  std::tuple<It...> iterators_;
};
template <class... It> zip_iterator<std::tuple<It...>> make_zip_iterator(std::tuple<It...> iterators) {
  return iterators;
}
template <class... It>
  requires(sizeof...(It) > 1)
zip_iterator<std::tuple<It...>> make_zip_iterator(It... iterators) {
  return std::tuple<It...>(iterators...);
}

// Calls a function of several arguments with the elements of a tuple.
template <class F>
struct zip_function {
  F function;
  explicit zip_function(F function) : function(function) {}
  template <class Tuple> decltype(auto) operator()(Tuple&& all) const {
    F own = function;
    return std::apply(own, std::forward<Tuple>(all));
  }
};
template <class F> zip_function<std::decay_t<F>> make_zip_function(F&& function) {
  return zip_function<std::decay_t<F>>(function);
}

}  // namespace thrust
