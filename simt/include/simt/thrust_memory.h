// thrust's pointers and references to device memory, and copies between the host and the device.
#pragma once

#include <iosfwd>
#include <new>
#include <vector>

#include <simt/thrust_core.h>

namespace thrust {

template <class T> class device_reference;

template <class T>
class device_ptr : public simt::IteratorBase<device_ptr<T>, std::remove_cv_t<T>, device_reference<T>> {
 public:
  static constexpr int simt_system = 2;
  using element_type = T;
  using pointer = device_ptr;
  constexpr device_ptr() = default;
  constexpr device_ptr(std::nullptr_t) {}
  constexpr explicit device_ptr(T* pointer) : pointer_(pointer) {}
  template <class U>
    requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>)
  constexpr device_ptr(const device_ptr<U>& other) : pointer_(other.get()) {}
  constexpr T* get() const { return pointer_; }
  constexpr explicit operator bool() const { return pointer_ != nullptr; }
  T* raw_pointer() const { return pointer_; }
  T* simt_unwrapped() const { return pointer_; }
  device_reference<T> at(std::ptrdiff_t n) const { return device_reference<T>(device_ptr(pointer_ + n)); }
  void move(std::ptrdiff_t n) { pointer_ += n; }
  std::ptrdiff_t distance(const device_ptr& to) const { return to.pointer_ - pointer_; }

 private:
  T* pointer_ = nullptr;
};

template <class T> T* raw_pointer_cast(T* pointer) { return pointer; }
template <class T> T* raw_pointer_cast(const device_ptr<T>& pointer) { return pointer.get(); }
template <class T> device_ptr<T> device_pointer_cast(T* pointer) { return device_ptr<T>(pointer); }
template <class T> device_ptr<T> device_pointer_cast(const device_ptr<T>& pointer) { return pointer; }

namespace detail {
// Copies bytes between the host and the device. from_device: whether the source is device memory, else the target is.
inline void transfer(void* target, const void* source, std::size_t bytes, bool from_device) {
  if (bytes == 0) return;
  check_error("thrust::copy");
  const char* why = simt::transfer_problem("thrust::copy", target, !from_device, source, from_device, bytes);
  if (why) {
    simt::failed(cudaErrorInvalidValue, why);
    std::string text(why);
    while (!text.empty() && text.back() == '.') text.pop_back();
    throw system_error(cudaErrorInvalidValue, cuda_category(), text);
  }
  simt::move_bytes(target, source, bytes);
}
// A value as bytes, which needs no constructor.
template <class T>
struct Bytes {
  alignas(T) unsigned char bytes[sizeof(T)];
  T& value() { return *(T*)bytes; }
};
template <class T>
std::remove_cv_t<T> load(const T* pointer) {
  if (simt::in_kernel()) return *pointer;
  Bytes<std::remove_cv_t<T>> copy;
  transfer(copy.bytes, (const void*)pointer, sizeof(T), true);
  return copy.value();
}
template <class T>
void store(T* pointer, const T& value) {
  if (simt::in_kernel())
    *pointer = value;
  else
    transfer((void*)pointer, (const void*)&value, sizeof(T), false);
}
}  // namespace detail

// An element in device memory: the host reads and writes it by a copy.
template <class T>
class device_reference {
 public:
  using value_type = std::remove_cv_t<T>;
  using pointer = device_ptr<T>;
  explicit device_reference(const device_ptr<T>& pointer) : pointer_(pointer) {}
  device_reference(const device_reference&) = default;
  template <class U>
    requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>)
  device_reference(const device_reference<U>& other) : pointer_(&other) {}
  operator value_type() const { return detail::load(pointer_.get()); }
  device_ptr<T> operator&() const { return pointer_; }
  const device_reference& operator=(const value_type& value) const {
    detail::store(pointer_.get(), value);
    return *this;
  }
  const device_reference& operator=(const device_reference& other) const { return *this = (value_type)other; }
  template <class U>
  const device_reference& operator=(const device_reference<U>& other) const {
    return *this = static_cast<value_type>(static_cast<typename device_reference<U>::value_type>(other));
  }
  template <class U> const device_reference& operator+=(const U& other) const {
    return set((value_type) * this + other);
  }
  template <class U> const device_reference& operator-=(const U& other) const {
    return set((value_type) * this - other);
  }
  template <class U> const device_reference& operator*=(const U& other) const {
    return set((value_type) * this * other);
  }
  template <class U> const device_reference& operator/=(const U& other) const {
    return set((value_type) * this / other);
  }
  const device_reference& operator++() const { return set((value_type) * this + 1); }
  const device_reference& operator--() const { return set((value_type) * this - 1); }
  value_type operator++(int) const {
    const value_type old = *this;
    set(old + 1);
    return old;
  }
  friend void swap(const device_reference& a, const device_reference& b) {
    const value_type value = a;
    a = (value_type)b;
    b = value;
  }
  template <class Stream>
    requires requires(Stream& stream, const value_type& value) { stream << value; }
  friend Stream& operator<<(Stream& stream, const device_reference& reference) {
    stream << (value_type)reference;
    return stream;
  }

 private:
  template <class U> const device_reference& set(const U& value) const {
    return *this = static_cast<value_type>(value);
  }
  device_ptr<T> pointer_;
};
template <class T> T& raw_reference_cast(T& reference) { return reference; }
template <class T> T& raw_reference_cast(const device_reference<T>& reference) { return *(&reference).get(); }

// ---- allocation ----

namespace detail {
template <class T>
device_ptr<T> allocate(std::size_t n) {
  if (n == 0) return {};
  check_error("thrust::device_malloc");
  T* pointer = (T*)simt::allocate(n * sizeof(T));
  if (!pointer) throw std::bad_alloc();
  simt::close_to_host((void*)pointer);
  return device_ptr<T>(pointer);
}
template <class T>
void deallocate(const device_ptr<T>& pointer) {
  if (pointer) simt::release((void*)pointer.get());
}
}  // namespace detail
template <class T> device_ptr<T> device_malloc(std::size_t n) { return detail::allocate<T>(n); }
inline device_ptr<unsigned char> device_malloc(std::size_t n) { return detail::allocate<unsigned char>(n); }
template <class T> void device_free(device_ptr<T> pointer) { detail::deallocate(pointer); }
template <class T>
struct device_allocator {
  using value_type = T;
  using pointer = device_ptr<T>;
  device_ptr<T> allocate(std::size_t n) { return detail::allocate<T>(n); }
  void deallocate(device_ptr<T> pointer, std::size_t) { detail::deallocate(pointer); }
};
template <class T> using device_malloc_allocator = device_allocator<T>;

// ---- copies ----

namespace detail {

template <bool device, class It, class Out>
void copy_items(const Place<device>& place, It first, simt::Index n, Out result) {
  run(
      place, "thrust::copy", "first,result",
      [n](auto in, auto out) {
        for (simt::Index i = 0; i < n; ++i) out[i] = in[i];
      },
      first, result);
}

template <class It, class Out>
void copy_to_device(const Place<true>& place, It first, simt::Index n, Out result) {
  using T = simt::output_value<unwrapped<Out>, simt::value_of<It>>;
  std::vector<Bytes<T>> buffer((std::size_t)n);
  for (simt::Index i = 0; i < n; ++i, ++first) ::new ((void*)&buffer[(std::size_t)i]) T(static_cast<T>(*first));
  if constexpr (std::is_pointer_v<unwrapped<Out>>) {
    transfer((void*)unwrap(result), buffer.data(), (std::size_t)n * sizeof(T), false);
  } else {
    auto room = simt::make_scratch<T>((std::size_t)n);
    transfer((void*)room->pointer(), buffer.data(), (std::size_t)n * sizeof(T), false);
    copy_items(place, device_ptr<T>(room->pointer()), n, result);
  }
}
template <class It, class Out>
Out copy_to_host(const Place<true>& place, It first, simt::Index n, Out result) {
  using T = simt::value_of<unwrapped<It>>;
  std::vector<Bytes<T>> buffer((std::size_t)n);
  if constexpr (std::is_pointer_v<unwrapped<It>>) {
    transfer(buffer.data(), (const void*)unwrap(first), (std::size_t)n * sizeof(T), true);
  } else {
    auto room = simt::make_scratch<T>((std::size_t)n);
    copy_items(place, first, n, device_ptr<T>(room->pointer()));
    transfer(buffer.data(), (const void*)room->pointer(), (std::size_t)n * sizeof(T), true);
  }
  for (Bytes<T>& each : buffer) *result++ = each.value();
  return result;
}

template <bool device, class It, class N, class Out>
Out copy_n(const Place<device>& place, It first, N n, Out result) {
  if (n <= 0) return result;
  constexpr int from = system_of<It>(), to = system_of<Out>();
  if constexpr (from == 1 && to == 2) {
    if (!simt::in_kernel()) {
      copy_to_device({place.stream, place.waits, place.caller, nullptr}, first, (simt::Index)n, result);
      return result + (std::ptrdiff_t)n;
    }
  }
  if constexpr (from == 2 && to == 1) {
    if (!simt::in_kernel()) {
      return copy_to_host({place.stream, place.waits, place.caller, nullptr}, first, (simt::Index)n, result);
    }
  }
  if constexpr (from == 1 && !std::random_access_iterator<It>) {
    for (N i = 0; i < n; ++i) *result++ = *first++;
    return result;
  } else if constexpr (to == 1 && !std::random_access_iterator<Out>) {  // as an ostream_iterator
    for (N i = 0; i < n; ++i) *result++ = first[i];
    return result;
  } else {
    copy_items(place, first, (simt::Index)n, result);
    return result + (std::ptrdiff_t)n;
  }
}
template <bool device, class It, class Out>
Out copy(const Place<device>& place, It first, It last, Out result) {
  return detail::copy_n(place, first, (std::ptrdiff_t)std::distance(first, last), result);
}

template <bool device, class It, class Out>
Out uninitialized_copy(const Place<device>& place, It first, It last, Out result) {
  return detail::copy(place, first, last, result);
}

}  // namespace detail

SIMT_THRUST(copy, (class It, class Out), (It first, It last, Out result), (first, last, result))
SIMT_THRUST(uninitialized_copy, (class It, class Out), (It first, It last, Out result), (first, last, result))
SIMT_THRUST(copy_n, (class It, class N, class Out), (It first, N n, Out result), (first, n, result))

}  // namespace thrust
