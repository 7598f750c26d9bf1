// What is known of live memory, by its address, and the lock under which it is kept: host threads may allocate at once.
#pragma once

namespace simt {

class SpinLock {
 public:
  explicit SpinLock(bool& held) : held_(held) {
    while (__atomic_test_and_set(&held_, __ATOMIC_ACQUIRE)) {}
  }
  ~SpinLock() { __atomic_clear(&held_, __ATOMIC_RELEASE); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  bool& held_;
};

// A list of T, which has a member `pointer`. The caller holds a lock. What is not found has a null pointer.
template <class T>
class LiveList {
 public:
  void add(const T& value) { first_ = new Node{value, first_}; }
  T take(const void* pointer) {
    for (Node** at = &first_; *at; at = &(*at)->next) {
      if ((*at)->value.pointer != pointer) continue;
      Node* found = *at;
      const T value = found->value;
      *at = found->next;
      delete found;
      return value;
    }
    return {};
  }
  template <class F>
  T find(F holds) const {
    for (const Node* at = first_; at; at = at->next)
      if (holds(at->value)) return at->value;
    return {};
  }

 private:
  struct Node {
    T value;
    Node* next;
  };
  Node* first_ = nullptr;
};

}  // namespace simt
