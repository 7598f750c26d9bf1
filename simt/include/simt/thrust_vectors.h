// thrust::device_vector and thrust::host_vector.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <simt/thrust_memory.h>

namespace thrust {

template <class T, class Allocator> class host_vector;

template <class T, class Allocator = device_allocator<T>>
class device_vector {
  template <class It>
  static constexpr bool is_iterator = std::input_or_output_iterator<It>;

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = device_ptr<T>;
  using const_pointer = device_ptr<const T>;
  using reference = device_reference<T>;
  using const_reference = device_reference<const T>;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;

  device_vector() = default;
  explicit device_vector(const Allocator&) {}
  explicit device_vector(std::size_t n) { grow_to(n), fill(0, n, T()); }
  device_vector(std::size_t n, const T& value) { grow_to(n), fill(0, n, value); }
  device_vector(std::size_t n, const T& value, const Allocator&) : device_vector(n, value) {}
  template <class It>
    requires is_iterator<It>
  device_vector(It first, It last) {
    assign(first, last);
  }
  device_vector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  device_vector(const device_vector& other) { assign(other.begin(), other.end()); }
  device_vector(device_vector&& other) noexcept { swap(other); }
  template <class U, class A> device_vector(const device_vector<U, A>& other) { assign(other.begin(), other.end()); }
  template <class U, class A> device_vector(const host_vector<U, A>& other) { assign(other.begin(), other.end()); }
  template <class U, class A> device_vector(const std::vector<U, A>& other) { assign(other.begin(), other.end()); }
  ~device_vector() { detail::deallocate(data_); }

  device_vector& operator=(const device_vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  device_vector& operator=(device_vector&& other) noexcept {
    swap(other);
    return *this;
  }
  template <class Other>
    requires requires(const Other& other) { other.begin(), other.end(); }
  device_vector& operator=(const Other& other) {
    assign(other.begin(), other.end());
    return *this;
  }
  device_vector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t max_size() const { return ~std::size_t(0) / sizeof(T); }
  bool empty() const { return size_ == 0; }
  device_ptr<T> data() { return data_; }
  device_ptr<const T> data() const { return data_; }
  iterator begin() { return data_; }
  iterator end() { return data_ + (std::ptrdiff_t)size_; }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return const_iterator(data_) + (std::ptrdiff_t)size_; }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  auto rbegin() { return std::make_reverse_iterator(end()); }
  auto rend() { return std::make_reverse_iterator(begin()); }
  reference operator[](std::size_t i) { return begin()[(std::ptrdiff_t)i]; }
  const_reference operator[](std::size_t i) const { return begin()[(std::ptrdiff_t)i]; }
  reference front() { return (*this)[0]; }
  const_reference front() const { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  const_reference back() const { return (*this)[size_ - 1]; }
  Allocator get_allocator() const { return {}; }

  void reserve(std::size_t n) {
    if (n > capacity_) move_to(n);
  }
  void shrink_to_fit() {
    if (size_ < capacity_) move_to(size_);
  }
  void resize(std::size_t n) { resize(n, T()); }
  void resize(std::size_t n, const T& value) {
    const std::size_t old = size_;
    grow_to(n);
    if (n > old) fill(old, n - old, value);
  }
  void clear() { size_ = 0; }
  void push_back(const T& value) { resize(size_ + 1, value); }
  void pop_back() { --size_; }
  void assign(std::size_t n, const T& value) {
    grow_to(n);
    fill(0, n, value);
  }
  template <class It>
    requires is_iterator<It>
  void assign(It first, It last) {
    grow_to((std::size_t)std::distance(first, last));
    thrust::copy(first, last, begin());
  }
  iterator insert(const_iterator where, const T& value) { return insert(where, 1, value); }
  iterator insert(const_iterator where, std::size_t n, const T& value) {
    const std::vector<T> values(n, value);
    return insert(where, values.begin(), values.end());
  }
  template <class It>
    requires is_iterator<It>
  iterator insert(const_iterator where, It first, It last) {
    const std::ptrdiff_t at = where - const_iterator(begin()), count = std::distance(first, last);
    device_vector rest(begin() + at, end());
    grow_to(size_ + (std::size_t)count);
    thrust::copy(first, last, begin() + at);
    thrust::copy(rest.begin(), rest.end(), begin() + at + count);
    return begin() + at;
  }
  iterator erase(const_iterator where) { return erase(where, where + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    const std::ptrdiff_t at = first - const_iterator(begin());
    device_vector rest(last, cend());
    thrust::copy(rest.begin(), rest.end(), begin() + at);
    size_ -= (std::size_t)(last - first);
    return begin() + at;
  }
  void swap(device_vector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  friend void swap(device_vector& a, device_vector& b) noexcept { a.swap(b); }

  std::vector<T> simt_on_host() const {
    std::vector<T> values;
    values.reserve(size_);
    thrust::copy(begin(), end(), std::back_inserter(values));
    return values;
  }

 private:
  // Gives it n items, of which new ones have no value yet.
  void grow_to(std::size_t n) {
    if (n > capacity_) move_to(capacity_ && n < 2 * capacity_ ? 2 * capacity_ : n);
    size_ = n;
  }
  void move_to(std::size_t capacity) {
    const device_ptr<T> moved = detail::allocate<T>(capacity);
    if (size_) simt::move_bytes((void*)moved.get(), (const void*)data_.get(), size_ * sizeof(T));
    detail::deallocate(data_);
    data_ = moved;
    capacity_ = capacity;
  }
  void fill(std::size_t from, std::size_t n, const T& value) {
    const std::size_t most = 4096;
    const std::vector<T> values(std::min(n, most), value);
    for (std::size_t done = 0; done < n; done += most)
      thrust::copy_n(values.begin(), (std::ptrdiff_t)std::min(most, n - done), begin() + (std::ptrdiff_t)(from + done));
  }

  device_ptr<T> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

template <class T, class Allocator = std::allocator<T>>
class host_vector : public std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::Base;
  host_vector() = default;
  host_vector(const host_vector&) = default;
  host_vector(host_vector&&) noexcept = default;
  host_vector(const Base& other) : Base(other) {}
  template <class U, class A> host_vector(const device_vector<U, A>& other) { copy_from(other); }
  template <class U, class A>
    requires(!std::is_same_v<U, T>)
  host_vector(const host_vector<U, A>& other) : Base(other.begin(), other.end()) {}
  template <class It>
    requires(detail::system_of<It>() == 2)
  host_vector(It first, It last) {
    this->resize((std::size_t)(last - first));
    thrust::copy(first, last, this->begin());
  }
  host_vector& operator=(const host_vector&) = default;
  host_vector& operator=(host_vector&&) noexcept = default;
  using Base::operator=;
  template <class U, class A> host_vector& operator=(const device_vector<U, A>& other) {
    copy_from(other);
    return *this;
  }

 private:
  template <class Other> void copy_from(const Other& other) {
    this->resize(other.size());
    thrust::copy(other.begin(), other.end(), this->begin());
  }
};

template <class T, class A, class U, class B>
bool operator==(const device_vector<T, A>& a, const device_vector<U, B>& b) {
  return a.size() == b.size() && a.simt_on_host() == b.simt_on_host();
}
template <class T, class A>
bool operator==(const device_vector<T, A>& a, const std::vector<T>& b) {
  return a.simt_on_host() == b;
}
template <class T, class A>
bool operator==(const std::vector<T>& a, const device_vector<T, A>& b) {
  return b.simt_on_host() == a;
}

}  // namespace thrust
