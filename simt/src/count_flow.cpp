// Reads the list of basic blocks beside an extension, and finds where diverged lanes meet: immediate post-dominators.
#include "count_flow.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace simt {

// Lines of the list: `function LOW HIGH ID`, a function's range of addresses (a function may have several), and
// `block OFFSET FUNCTION entry|- open|closed NEXT,NEXT… UNDER INSTRUCTIONS FLOPS …`; addresses are hexadecimal, `end` leaves.
Flow::Flow(const Module& module) {
  std::ifstream list(module.path + ".blocks");
  struct Line { int block; std::string next; };
  std::vector<Line> lines;
  for (std::string text; std::getline(list, text);) {
    std::istringstream words(text);
    std::string kind, entry, open, next, under;
    words >> kind;
    if (kind == "function") {
      Function function{};
      words >> std::hex >> function.low >> function.high >> std::dec >> function.id;
      functions_.push_back(function);
    } else if (kind == "block") {
      std::uint64_t offset = 0;
      Block block;
      words >> std::hex >> offset >> std::dec >> block.function >> entry >> open >> next >> under >> block.instructions >> block.flops;
      block.entry = entry == "entry";
      block.open = open == "open";
      const int id = static_cast<int>(blocks_.size());
      by_offset_[offset] = id;
      blocks_.push_back(block);
      open_ += block.open;
      lines.push_back({id, next});
    }
  }
  std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) { return a.low < b.low; });
  for (const Line& line : lines) {
    std::istringstream parts(line.next);
    auto& next = blocks_[static_cast<std::size_t>(line.block)].next;
    for (std::string part; std::getline(parts, part, ',');) {
      if (part == "end") next.push_back(-1);
      else if (part != "-") next.push_back(block_at(std::stoull(part, nullptr, 16)));
    }
  }
}

int Flow::function_at(std::uint64_t offset) const {
  auto after = std::upper_bound(functions_.begin(), functions_.end(), offset, [](std::uint64_t o, const Function& f) { return o < f.low; });
  if (after == functions_.begin()) return -1;
  const Function& function = *std::prev(after);
  return offset < function.high ? function.id : -1;
}

int Flow::block_at(std::uint64_t offset) {
  auto found = by_offset_.find(offset);
  if (found != by_offset_.end()) return found->second;
  Block block;
  block.function = function_at(offset);
  blocks_.push_back(block);
  ++open_;
  return by_offset_[offset] = static_cast<int>(blocks_.size()) - 1;
}

bool Flow::follows(int from, int to) const {
  const auto& next = blocks_[static_cast<std::size_t>(from)].next;
  return std::find(next.begin(), next.end(), to) != next.end();
}

void Flow::add(int from, int to) {
  if (follows(from, to)) return;
  blocks_[static_cast<std::size_t>(from)].next.push_back(to);
  solved_[blocks_[static_cast<std::size_t>(from)].function] = false;
}

int Flow::meeting_point(int block) {
  const int function = blocks_[static_cast<std::size_t>(block)].function;
  if (!solved_[function]) solve(function);
  return blocks_[static_cast<std::size_t>(block)].meeting;
}

// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph; its root is the end.
void Flow::solve(int function) {
  solved_[function] = true;
  std::vector<int> members;
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (blocks_[b].function == function) members.push_back(static_cast<int>(b));
  const int end = static_cast<int>(members.size());
  std::map<int, int> place;
  for (int i = 0; i < end; ++i) place[members[static_cast<std::size_t>(i)]] = i;
  std::vector<std::vector<int>> next(members.size() + 1), before(members.size() + 1);
  for (int i = 0; i < end; ++i) {
    const Block& block = blocks_[static_cast<std::size_t>(members[static_cast<std::size_t>(i)])];
    for (int n : block.next) {
      auto found = place.find(n);
      next[static_cast<std::size_t>(i)].push_back(n < 0 || found == place.end() ? end : found->second);
    }
    if (block.next.empty()) next[static_cast<std::size_t>(i)].push_back(end);
    for (int n : next[static_cast<std::size_t>(i)]) before[static_cast<std::size_t>(n)].push_back(i);
  }
  // Postorder of the reversed graph, from the end. What can't reach the end (an endless loop) gets no meeting point.
  std::vector<int> order(members.size() + 1, -1), sequence;
  std::vector<std::pair<int, std::size_t>> stack{{end, 0}};
  std::vector<bool> seen(members.size() + 1, false);
  seen[static_cast<std::size_t>(end)] = true;
  while (!stack.empty()) {
    auto& [node, at] = stack.back();
    const auto& from = before[static_cast<std::size_t>(node)];
    if (at < from.size()) {
      const int to = from[at++];
      if (!seen[static_cast<std::size_t>(to)]) {
        seen[static_cast<std::size_t>(to)] = true;
        stack.push_back({to, 0});
      }
    } else {
      order[static_cast<std::size_t>(node)] = static_cast<int>(sequence.size());
      sequence.push_back(node);
      stack.pop_back();
    }
  }
  std::vector<int> meeting(members.size() + 1, -1);
  meeting[static_cast<std::size_t>(end)] = end;
  auto common = [&](int a, int b) {
    while (a != b) {
      while (order[static_cast<std::size_t>(a)] < order[static_cast<std::size_t>(b)]) a = meeting[static_cast<std::size_t>(a)];
      while (order[static_cast<std::size_t>(b)] < order[static_cast<std::size_t>(a)]) b = meeting[static_cast<std::size_t>(b)];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto node = sequence.rbegin(); node != sequence.rend(); ++node) {
      if (*node == end) continue;
      int found = -1;
      for (int n : next[static_cast<std::size_t>(*node)])
        if (meeting[static_cast<std::size_t>(n)] >= 0) found = found < 0 ? n : common(n, found);
      if (found >= 0 && meeting[static_cast<std::size_t>(*node)] != found) {
        meeting[static_cast<std::size_t>(*node)] = found;
        changed = true;
      }
    }
  }
  for (int i = 0; i < end; ++i) {
    const int m = meeting[static_cast<std::size_t>(i)];
    blocks_[static_cast<std::size_t>(members[static_cast<std::size_t>(i)])].meeting = m < 0 || m == end ? -1 : members[static_cast<std::size_t>(m)];
  }
}

}  // namespace simt
