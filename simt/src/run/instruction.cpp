// Decodes the faulting instruction. On x86-64 two kinds of fault come with the code SI_KERNEL and the address 0,
// whatever was touched: an access that must be aligned and is not, and any access outside of the addresses that memory
// can have (SIGBUS where the base is rbp or rsp, else SIGSEGV). The instruction's own operand shows which of the two it
// was, where, and whether it writes.
#include "run/instruction.h"

#include <cstring>

namespace simt {
namespace {

template <class T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

#if defined(__x86_64__)
bool was_write(const ucontext_t* context) { return context->uc_mcontext.gregs[REG_ERR] & 2; }

std::uintptr_t general(const ucontext_t* context, unsigned number) {
  constexpr int names[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uintptr_t>(context->uc_mcontext.gregs[names[number]]);
}

// Opcode maps, as the manuals number them: 0 one byte, 1 after 0f, 2 after 0f 38, 3 after 0f 3a.
bool has_operand(unsigned map, unsigned op) {
  if (map >= 2) return true;
  if (map == 1)
    return !(op < 0x10 || (op >= 0x30 && op < 0x38) || op == 0x77 || (op >= 0x80 && op < 0x90) ||
             (op >= 0xa0 && op < 0xa3) || (op >= 0xc8 && op < 0xd0));
  return (op < 0x40 && op % 8 < 4) || op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op < 0x90) ||
         op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op < 0xd4) ||
         (op >= 0xd8 && op < 0xe0) || op == 0xf6 || op == 0xf7 || op >= 0xfe;
}

// Returns whether the operand in memory is written. part: the bits that select the operation of some opcodes.
bool writes(unsigned map, unsigned op, unsigned part, unsigned prefix) {
  if (map == 0) {
    if (op < 0x40) return op % 8 < 2 && op < 0x38;
    if (op == 0x80 || op == 0x81 || op == 0x83) return part != 7;
    if (op >= 0xd8 && op < 0xe0) return op % 2 && (part == 2 || part == 3 || part == 7);
    if (op == 0xf6 || op == 0xf7) return part == 2 || part == 3;
    if (op >= 0xfe) return part < 2;
    return (op >= 0x86 && op < 0x8a) || op == 0x8f || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 ||
           (op >= 0xd0 && op < 0xd4);
  }
  if (map == 1) {
    if (op == 0x7e) return prefix != 0xf3;
    if (op == 0xba) return part > 4;
    return (op >= 0x90 && op < 0xa0) ||
           std::memchr("\x11\x13\x17\x29\x2b\x7f\xa4\xa5\xab\xac\xad\xb0\xb1\xb3\xbb\xc0\xc1\xc3\xc7\xd6\xe7",
                       static_cast<int>(op), 21);
  }
  if (map == 2) return op == 0xf1 && prefix != 0xf2;
  return (op >= 0x14 && op < 0x18) || op == 0x19 || op == 0x1d || op == 0x39;
}

// Returns the operand in memory. Instructions that kernels and the C library's copies do not use are unknown.
Touched operand(const ucontext_t* context) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(context->uc_mcontext.gregs[REG_RIP]);
  unsigned prefix = 0, rex = 0, map = 0;
  for (;; ++at) {
    if (*at == 0x66 || *at == 0xf2 || *at == 0xf3)
      prefix = *at;
    else if (*at != 0xf0 && *at != 0x2e && *at != 0x36 && *at != 0x3e && *at != 0x26)
      break;
  }
  constexpr unsigned of_vex[] = {0, 0x66, 0xf3, 0xf2};
  if ((*at & 0xf0) == 0x40) rex = *at++;
  if (*at == 0xc5) {
    prefix = of_vex[at[1] & 3];
    map = 1;
    at += 2;
  } else if (*at == 0xc4) {
    rex = ~at[1] >> 5;
    map = at[1] & 31;
    prefix = of_vex[at[2] & 3];
    at += 3;
    if (map < 1 || map > 3) return {};
  } else if (*at == 0x0f) {
    map = at[1] == 0x38 ? 2 : at[1] == 0x3a ? 3 : 1;
    at += map > 1 ? 2 : 1;
  }
  const unsigned op = *at++;
  if (map == 0 && (op == 0xa4 || op == 0xa5 || op == 0xaa || op == 0xab)) {  // copies and fills of many bytes
    const std::uintptr_t target = general(context, 7), source = general(context, 6);
    return op >= 0xaa || !possible(target) ? Touched{target, true, true} : Touched{source, false, true};
  }
  if (!has_operand(map, op)) return {};
  const unsigned mode = *at >> 6, part = *at >> 3 & 7, low = *at & 7;
  ++at;
  if (mode == 3 || (mode == 0 && low == 5)) return {};  // a register, or a variable of the module's
  std::uintptr_t address = 0;
  unsigned base = low;
  if (low == 4) {
    const unsigned scale = *at >> 6, index = (*at >> 3 & 7) | (rex & 2) << 2;
    base = *at++ & 7;
    if (index != 4) address = general(context, index) << scale;
  }
  const bool no_base = low == 4 && base == 5 && mode == 0;
  if (!no_base) address += general(context, base | (rex & 1) << 3);
  if (mode == 1) address += static_cast<std::uintptr_t>(load<std::int8_t>(at));
  if (mode == 2 || no_base) address += static_cast<std::uintptr_t>(load<std::int32_t>(at));
  return {address, writes(map, op, part, prefix), true};
}
#elif defined(__aarch64__)
std::uint32_t code_at(const ucontext_t* context) {
  return load<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(context->uc_mcontext.pc));
}

bool of_one_register(std::uint32_t code) { return (code & 0x3a000000) == 0x38000000; }

bool was_write(const ucontext_t* context) {
  // The exception syndrome follows in the extension records; without it, as under an emulator, the instruction is
  // decoded.
  const auto* at = reinterpret_cast<const std::uint8_t*>(context->uc_mcontext.__reserved);
  for (;;) {
    const auto magic = load<unsigned>(at), size = load<unsigned>(at + 4);
    if (magic == 0 || size == 0) break;
    if (magic == 0x45535201) return load<std::uint64_t>(at + 8) & 0x40;
    at += size;
  }
  const std::uint32_t code = code_at(context);
  if (!of_one_register(code)) return !(code >> 22 & 1);
  const bool atomic = (code & 0x01200c00) == 0x00200000,
             wide = code >> 26 & 1 && code >> 30 == 0;      // wide: of 16 bytes, or of one
  return atomic || (code >> 22 & 3) == 0 || (wide && (code >> 22 & 3) == 2);
}

// Returns the approximate address of a load or store, without a constant offset.
std::uintptr_t operand(const ucontext_t* context) {
  const auto& registers = context->uc_mcontext;
  const std::uint32_t code = code_at(context);
  if ((code & 0x0a000000) != 0x08000000) return 0;
  const unsigned base = code >> 5 & 31, index = code >> 16 & 31, kind = code >> 13 & 7;
  const std::uintptr_t address = base == 31 ? registers.sp : registers.regs[base];
  if (!of_one_register(code) || (code & 0x01200c00) != 0x00200800 || index == 31) return address;
  const std::uintptr_t offset = kind == 6
                                    ? static_cast<std::uintptr_t>(static_cast<std::int32_t>(registers.regs[index]))
                                : kind == 2 ? static_cast<std::uint32_t>(registers.regs[index])
                                            : registers.regs[index];
  const unsigned scale = code >> 30 | (code >> 26 & 1 && code >> 23 & 1 ? 4 : 0);
  return address + (code >> 12 & 1 ? offset << scale : offset);
}
#endif

}  // namespace

Touched touched(const siginfo_t* info, const ucontext_t* context) {
  const auto given = reinterpret_cast<std::uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  if (info->si_code == SI_KERNEL) return operand(context);
#else
  // Linux gives the address; an emulator that runs on another processor may give 0 instead.
  if (given < 65536 && operand(context) >= 1 << 20) return {operand(context), was_write(context), true};
#endif
  return {given, was_write(context), true};
}

}  // namespace simt
