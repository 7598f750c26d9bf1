// Reads an extension's list of basic blocks, and finds where diverged lanes reconverge: immediate post-dominators.
#include "count/flow.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace simt {
namespace {

// A text's pieces between separators. (Not by operator>> of a stream: where the linker took libstdc++ from its archive,
// there are two of them in a process, and that one fails for numbers.)
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::uint64_t hexadecimal(const std::string& text) { return std::stoull(text, nullptr, 16); }

}  // namespace

// Lines of the list: `function LOW HIGH ID`, a function's range of addresses (a function may have several), and
// `block OFFSET FUNCTION entry|- open|closed NEXT,NEXT… UNDER INSTRUCTIONS FLOPS …`; addresses are hexadecimal, `end`
// leaves; `increment OFFSET`, a call that adds 1 atomically.
Flow::Flow(const Module& module) {
  std::ifstream list(module.path + ".blocks");
  struct Line {
    int block;
    std::string next, under;
  };
  std::vector<Line> lines;
  for (std::string text; std::getline(list, text);) {
    const std::vector<std::string> words = split(text, ' ');
    if (words.size() == 4 && words[0] == "function") {
      functions_.push_back({hexadecimal(words[1]), hexadecimal(words[2]), std::stoi(words[3])});
    } else if (words.size() == 2 && words[0] == "increment") {
      increments_.insert(hexadecimal(words[1]));
    } else if (words.size() >= 9 && words[0] == "block") {
      Block block;
      block.function = std::stoi(words[2]);
      block.entry = words[3] == "entry";
      block.open = words[4] == "open";
      block.instructions = std::stod(words[7]);
      block.flops = std::stod(words[8]);
      const int id = static_cast<int>(blocks_.size());
      by_offset_[hexadecimal(words[1])] = id;
      blocks_.push_back(block);
      open_ += block.open;
      lines.push_back({id, words[5], words[6]});
    }
  }
  std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) { return a.low < b.low; });
  for (const Line& line : lines) {
    if (line.under != "-") blocks_[at(line.block)].under = block_at(hexadecimal(line.under));
    auto& next = blocks_[at(line.block)].next;
    for (const std::string& part : split(line.next, ',')) {
      if (part == "end")
        next.push_back(-1);
      else if (part != "-")
        next.push_back(block_at(hexadecimal(part)));
    }
  }
}

int Flow::function_at(std::uint64_t offset) const {
  auto after = std::upper_bound(functions_.begin(), functions_.end(), offset,
                                [](std::uint64_t o, const Function& f) { return o < f.low; });
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
  const auto& next = blocks_[at(from)].next;
  return std::find(next.begin(), next.end(), to) != next.end();
}

void Flow::add(int from, int to) {
  if (follows(from, to)) return;
  blocks_[at(from)].next.push_back(to);
  solved_[blocks_[at(from)].function] = false;
}

int Flow::meeting_point(int block) {
  const int function = blocks_[at(block)].function;
  if (!solved_[function]) solve(function);
  return blocks_[at(block)].meeting;
}

bool Flow::inside(int block, int loop) const {
  int l = blocks_[at(block)].loop;
  while (l >= 0 && l != loop) l = loops_[at(l)].parent;
  return l >= 0;
}

// Returns the outermost loop around `from` that does not contain `to`, or -1.
int Flow::left_loop(int from, int to) const {
  int left = -1;
  for (int l = blocks_[at(from)].loop; l >= 0 && !inside(to, l); l = loops_[at(l)].parent) left = l;
  return left;
}

// A block that only returns is not a meeting point.
bool Flow::does_nothing(int block) const {
  const Block& it = blocks_[at(block)];
  return it.next == std::vector<int>{-1} && it.instructions <= 1;
}

void Flow::solve(int function) {
  solved_[function] = true;
  std::vector<int> members;
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (blocks_[b].function == function) {
      members.push_back(static_cast<int>(b));
      blocks_[b].meeting = blocks_[b].loop = -1;
    }
  solve_region(members, -1);
}

namespace {

// Part of a region: a block, or an inner loop as a whole.
struct Part {
  std::vector<int> members;
  std::vector<std::size_t> next;  // parts that may follow; the region's end is the last number
  bool loop = false;
};

// Strongly connected components (Tarjan 1972), each after all that follow it.
void find_parts(const std::vector<int>& members, const std::map<int, std::vector<int>>& next,
                std::vector<std::vector<int>>& parts) {
  std::map<int, int> number, low;
  std::map<int, bool> open;
  std::vector<int> path;
  int count = 0;
  struct Visit {
    int block;
    std::size_t at;
  };
  for (int start : members) {
    if (number.count(start)) continue;
    std::vector<Visit> stack{{start, 0}};
    while (!stack.empty()) {
      const int block = stack.back().block;
      if (stack.back().at == 0) {
        number[block] = low[block] = ++count;
        open[block] = true;
        path.push_back(block);
      }
      const auto& following = next.at(block);
      if (stack.back().at < following.size()) {
        const int to = following[stack.back().at++];
        if (!number.count(to))
          stack.push_back({to, 0});
        else if (open[to])
          low[block] = std::min(low[block], number[to]);
        continue;
      }
      if (low[block] == number[block]) {
        parts.emplace_back();
        for (int b = -1; b != block;) {
          b = path.back();
          path.pop_back();
          open[b] = false;
          parts.back().push_back(b);
        }
      }
      stack.pop_back();
      if (!stack.empty()) low[stack.back().block] = std::min(low[stack.back().block], low[block]);
    }
  }
}

// Returns the first part that all paths from these parts reach. Parts are numbered so that every path goes to lower
// numbers, or to `root` at the end.
std::size_t first_common(const std::vector<std::size_t>& from, const std::vector<bool>& in,
                         const std::vector<std::size_t>& meeting, std::size_t root) {
  std::size_t common = ~std::size_t(0);
  for (std::size_t n : from) {
    if (!in[n]) continue;
    if (common == ~std::size_t(0)) common = n;
    while (common != n) {
      // The end has the highest number but comes last; of two others the higher one comes first.
      if (n != root && (common == root || n > common))
        n = meeting[n];
      else
        common = meeting[common];
    }
  }
  return common == ~std::size_t(0) ? root : common;
}

// Each last part in turn ends the ones that lead there and to no earlier choice: first the one with the most ways in.
// idle: of each part, whether its first block does nothing. Returns where the lanes of each part meet.
std::vector<std::size_t> meetings_in_function(const std::vector<Part>& parts, const std::vector<bool>& idle) {
  const std::size_t end = parts.size();
  std::vector<std::size_t> meeting(end + 1, end);
  std::vector<bool> done(end, false);
  for (;;) {
    std::vector<std::size_t> best;
    std::pair<std::size_t, std::size_t> most{0, 0};
    for (std::size_t p = 0; p < end; ++p) {
      if (done[p] || !parts[p].next.empty()) continue;
      std::vector<bool> leads(end, false), elsewhere(end, false);
      std::vector<std::size_t> reach;
      std::size_t entries = 0;
      for (std::size_t q = 0; q < end; ++q) {  // what follows a part comes before it in the list
        leads[q] = q == p;
        elsewhere[q] = parts[q].next.empty() && q != p && !idle[q];
        for (std::size_t n : parts[q].next) {
          leads[q] = leads[q] || leads[n];
          elsewhere[q] = elsewhere[q] || elsewhere[n];
        }
        if (leads[q] && !done[q]) reach.push_back(q);
        if (leads[q] && elsewhere[q])
          for (std::size_t n : parts[q].next) entries += leads[n] && !elsewhere[n];
      }
      const std::pair<std::size_t, std::size_t> score{entries, reach.size()};
      if (best.empty() || score > most) best = reach, most = score;
    }
    if (best.empty()) break;
    std::vector<bool> in(end + 1, false);
    for (std::size_t q : best) in[q] = true;
    for (std::size_t q : best) {
      meeting[q] = first_common(parts[q].next, in, meeting, best.front());
      done[q] = true;
    }
    meeting[best.front()] = end;
  }
  return meeting;
}

}  // namespace

// A region is a function, or a loop's body without the ways back to its head. Inner loops taken as one, no part comes
// twice, and the parts' immediate post-dominators are found backwards from the region's end. Ways out of a loop on
// which no lane comes back, and early returns, do not count: lanes that take them are waited for no longer (as the
// BREAK and EXIT instructions have it).
void Flow::solve_region(const std::vector<int>& members, int loop) {
  const int head = loop < 0 ? -1 : loops_[at(loop)].head;
  std::map<int, std::vector<int>> next;
  for (int b : members) {
    auto& to = next[b];
    for (int n : blocks_[at(b)].next)
      if (n >= 0 && n != head && std::find(members.begin(), members.end(), n) != members.end()) to.push_back(n);
  }
  std::vector<std::vector<int>> found;
  find_parts(members, next, found);
  std::map<int, std::size_t> part_of;
  for (std::size_t p = 0; p < found.size(); ++p)
    for (int b : found[p]) part_of[b] = p;
  const std::size_t end = found.size();
  std::vector<Part> parts(end);
  for (std::size_t p = 0; p < end; ++p) {
    parts[p].members = found[p];
    for (int b : found[p]) {
      for (int n : next[b]) {
        if (part_of[n] == p)
          parts[p].loop = true;
        else if (loop >= 0 || !does_nothing(n))
          parts[p].next.push_back(part_of[n]);
      }
      const auto& all = blocks_[at(b)].next;
      if (loop >= 0 && std::find(all.begin(), all.end(), head) != all.end()) parts[p].next.push_back(end);
    }
  }
  std::vector<std::size_t> meeting(end + 1, end);
  if (loop < 0) {
    std::vector<bool> idle;
    for (const Part& part : parts) idle.push_back(does_nothing(part.members.front()));
    meeting = meetings_in_function(parts, idle);
  } else {
    const std::vector<bool> all(end + 1, true);
    for (std::size_t p = 0; p < end; ++p) meeting[p] = first_common(parts[p].next, all, meeting, end);
  }
  auto head_of = [&](std::size_t p) {
    if (p == end) return head;
    for (int b : parts[p].members)
      if (parts[p].loop)
        for (int from : members)
          if (part_of[from] != p && std::find(next[from].begin(), next[from].end(), b) != next[from].end()) return b;
    return parts[p].members.back();  // the first that was visited
  };
  // Two loops may have one head: then lanes that are through with the inner one meet before the outer one's next round.
  std::map<int, int> before_end;
  if (loop >= 0) before_end = before_leaving(members);
  auto meets = [&](std::size_t p, int b) {
    int found = b;
    do found = before_end.count(found) ? before_end[found] : -1;
    while (found >= 0 && part_of[found] == p && parts[p].loop);
    return found >= 0 ? found : head_of(meeting[p]);
  };
  for (std::size_t p = 0; p < end; ++p) {
    for (int b : parts[p].members) {
      blocks_[at(b)].loop = loop;
      blocks_[at(b)].meeting = meets(p, b);
    }
    if (!parts[p].loop) continue;
    loops_.push_back({head_of(p), meets(p, head_of(p)), loop});
    solve_region(parts[p].members, static_cast<int>(loops_.size()) - 1);
  }
}

// Of a loop's blocks those that come on every way out of the loop, whatever the round: immediate post-dominators, by
// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph.
std::map<int, int> Flow::before_leaving(const std::vector<int>& members) const {
  std::map<int, int> order, meeting;  // -1: the way out
  std::map<int, std::vector<int>> next, before;
  for (int b : members)
    for (int n : blocks_[at(b)].next) {
      const int to = std::find(members.begin(), members.end(), n) == members.end() ? -1 : n;
      next[b].push_back(to);
      before[to].push_back(b);
    }
  std::vector<int> sequence;
  std::map<int, bool> seen{{-1, true}};
  std::vector<std::pair<int, std::size_t>> stack{{-1, 0}};
  while (!stack.empty()) {
    const int node = stack.back().first;
    if (stack.back().second < before[node].size()) {
      const int to = before[node][stack.back().second++];
      if (!std::exchange(seen[to], true)) stack.push_back({to, 0});
    } else {
      order[node] = static_cast<int>(sequence.size());
      sequence.push_back(node);
      stack.pop_back();
    }
  }
  meeting[-1] = -1;
  auto common = [&](int a, int b) {
    while (a != b) {
      while (order[a] < order[b]) a = meeting[a];
      while (order[b] < order[a]) b = meeting[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto node = sequence.rbegin(); node != sequence.rend(); ++node) {
      if (*node < 0) continue;
      int found = -2;
      for (int n : next[*node])
        if (meeting.count(n)) found = found == -2 ? n : common(n, found);
      if (found != -2 && (!meeting.count(*node) || meeting[*node] != found)) {
        meeting[*node] = found;
        changed = true;
      }
    }
  }
  return meeting;
}

}  // namespace simt
