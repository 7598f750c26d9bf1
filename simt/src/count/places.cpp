// Finds, for an address in an extension's code, the probe that is called and the basic block that begins there.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "count/parts.h"

namespace simt {
namespace {

std::mutex flows_mutex;

template <class T>
const T* symbol_of(const Module& module, const char* name) {
  void* const library = dlopen(module.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  const void* const found = dlsym(library, name);
  dlclose(library);
  return static_cast<const T*>(found);
}

struct Text {
  const Module* module;
  std::uint64_t low, high;
};
int find_header(dl_phdr_info* info, std::size_t, void* data) {
  auto& text = *static_cast<Text*>(data);
  if (info->dlpi_addr != text.module->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
    text.low = info->dlpi_addr + header.p_vaddr;
    text.high = text.low + header.p_memsz;
  }
  return 1;
}

// Returns the target of the call that returns to `code`, or 0 if the instruction before it is not a call.
std::uintptr_t callee(std::uintptr_t code) {
#if defined(__x86_64__)
  const auto* at = reinterpret_cast<const unsigned char*>(code);
  if (at[-5] != 0xe8) return 0;
  std::int32_t distance;
  std::memcpy(&distance, at - 4, 4);
  return code + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(distance));
#else
  std::uint32_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(code - 4), 4);
  if (word >> 26 != 0x25) return 0;      // bl
  const std::int64_t distance = static_cast<std::int64_t>(static_cast<std::int32_t>(word << 6) >> 6) * 4;
  return code - 4 + static_cast<std::uintptr_t>(distance);
#endif
}

}  // namespace

std::shared_ptr<Flow> flow_of(const Module& module) {
  static auto* flows = new std::map<std::string, std::shared_ptr<Flow>>;
  std::lock_guard lock(flows_mutex);
  auto& flow = (*flows)[module.path];
  if (!flow) flow = std::make_shared<Flow>(module);
  return flow;
}

const ProbeFunction* probes_of(const Module& module) {
  return symbol_of<ProbeFunction>(module, "simt_probe_functions");
}

// Variables in constant memory.
std::vector<Variable> constants_of(const Module& module) {
  std::vector<Variable> constants;
  for (const Variable& variable : module.variables)
    if (variable.kind == Variable::constant) constants.push_back(variable);
  return constants;
}

void find_text(const Module& module, std::uint64_t& low, std::uint64_t& high) {
  Text text{&module, 0, 0};
  dl_iterate_phdr(find_header, &text);
  low = text.low;
  high = text.high;
}

// Finds the return address whose low part is `where`, and the function that is called there. In more code than the low
// part tells apart, several places may have it: takes one in the function where the newest spot was found, if there is
// one.
const void* Counter::code_of(std::uint64_t where, SpotKind& kind) const {
  if (auto found = described_.find(where); found != described_.end()) {
    kind.event = found->second.event;
    kind.bytes = found->second.bytes;
    kind.kind = found->second.kind;
    return found->second.code;
  }
  int newest = -1;
  for (auto spot = spots_.rbegin(); spot != spots_.rend() && newest < 0; ++spot) newest = spot->function;
  const void* found_code = nullptr;
  constexpr std::uint64_t period = std::uint64_t(1) << (where_bits + 2);
  for (std::uint64_t code = (text_low_ & ~(period - 1)) + where * 4; code < text_high_; code += period)
    for (unsigned low = 0; low < 4; ++low) {
      if (code + low < text_low_ + 8 || code + low > text_high_) continue;
      const std::uintptr_t function = callee(code + low);
      for (const ProbeFunction* probe = probes_; function && probe->address; ++probe)
        if (reinterpret_cast<std::uintptr_t>(probe->address) == function) {
          const bool is_near = newest < 0 || flow_->function_at(code + low - module_->base) == newest;
          if (found_code && !is_near) continue;
          kind.event = probe->event;
          kind.bytes = probe->bytes;
          found_code = reinterpret_cast<const void*>(code + low);
          if (is_near) return found_code;
        }
    }
  return found_code;
}

Spot& Counter::new_spot(std::uint64_t where) {
  spots_.emplace_back();
  Spot& spot = spots_.back();
  index_[where] = &spot;
  const auto code = reinterpret_cast<std::uintptr_t>(code_of(where, spot));
  spot.offset = code ? code - module_->base : 0;
  spot.function = flow_->function_at(spot.offset);
  spot.increments = flow_->increments(spot.offset);
  std::lock_guard lock(flow_->mutex);
  if (spot.event == Event::block || flow_->begins(spot.offset)) {
    spot.block = flow_->block_at(spot.offset);
    spot.entry = flow_->enters(spot.block);
    spot.open = flow_->open(spot.block);
    spot.branches = flow_->branches(spot.block);
    spot.instructions = flow_->instructions(spot.block);
    spot.flops = flow_->flops(spot.block);
  }
  return spot;
}

void Counter::describe(const void* code, Event event, unsigned bytes, int kind) {
  const std::uint64_t where = reinterpret_cast<std::uintptr_t>(code) >> 2 & ((std::uint64_t(1) << where_bits) - 1);
  if (index_[where]) return;
  described_.try_emplace(where, Described{code, event, static_cast<std::uint8_t>(bytes), kind});
}

std::uint64_t Counter::together(Together kind, const char* what, int line) {
  auto& known = met_[static_cast<unsigned>(line) % std::size(met_)];
  if (known.what == what && known.line == line && known.event) return known.event;
  auto [found, fresh] = together_of_.try_emplace({what, line}, static_cast<std::uint32_t>(together_.size()));
  if (fresh) {
    spots_.emplace_back();
    Spot& spot = spots_.back();
    spot.event = Event::together;
    spot.together = kind;
    spot.what = what;
    spot.line = line;
    together_.push_back(&spot);
  }
  known = {what, line, static_cast<std::uint64_t>(found->second) << address_bits | static_cast<std::uint64_t>(kind)};
  return known.event;
}

}  // namespace simt
