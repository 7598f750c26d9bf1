// Reads a loaded extension's symbol table: static __shared__ arrays are its thread-local symbols.
#include "run/module.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <mutex>
#include <sstream>

extern "C" void* __tls_get_addr(void*);

namespace simt {
namespace {

std::mutex mutex;
std::list<Module>& modules() {
  static auto* all = new std::list<Module>;
  return *all;
}

struct Search {
  std::uintptr_t symbol;
  Module* module;
  bool found = false;
};

int match(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  std::uintptr_t low = ~std::uintptr_t(0), high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    low = std::min<std::uintptr_t>(low, info->dlpi_addr + header.p_vaddr);
    high = std::max<std::uintptr_t>(high, info->dlpi_addr + header.p_vaddr + header.p_memsz);
  }
  if (search.symbol < low || search.symbol >= high) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const std::uintptr_t from = info->dlpi_addr + header.p_vaddr, to = from + header.p_memsz;
    if (header.p_type == PT_LOAD && header.p_flags & PF_W) {
      search.module->data_low = from;
      search.module->data_high = to;
    }
  }
  for (int i = 0; i < info->dlpi_phnum; ++i)      // what the loader writes once, vtables for instance, comes first
    if (const auto& header = info->dlpi_phdr[i]; header.p_type == PT_GNU_RELRO)
      search.module->data_low =
          std::max<std::uintptr_t>(search.module->data_low, info->dlpi_addr + header.p_vaddr + header.p_memsz);
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_TLS) search.module->tls_bytes = info->dlpi_phdr[i].p_memsz;
  search.module->base = info->dlpi_addr;
  search.module->low = low;
  search.module->high = high;
  search.module->tls_id = info->dlpi_tls_modid;
  search.module->path = info->dlpi_name;
  search.found = true;
  return 1;
}

// Returns the name as the source has it. A variable outside of all namespaces and a function of extern "C" have their own
// names as symbols, and one letter such as `t` is also the mangled name of a type.
std::string demangle(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

// The symbol table of an ELF file.
struct Symbols {
  std::vector<char> bytes;
  const ElfW(Sym) * first = nullptr;
  std::size_t count = 0;
  const char* names = nullptr;

  explicit Symbols(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (bytes.size() < sizeof(ElfW(Ehdr))) return;
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes.data());
    const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes.data() + header->e_shoff);
    for (int s = 0; s < header->e_shnum; ++s) {
      if (sections[s].sh_type != SHT_SYMTAB) continue;
      first = reinterpret_cast<const ElfW(Sym)*>(bytes.data() + sections[s].sh_offset);
      count = sections[s].sh_size / sizeof(ElfW(Sym));
      names = bytes.data() + sections[sections[s].sh_link].sh_offset;
    }
  }
  const char* name(const ElfW(Sym) & symbol) const { return names + symbol.st_name; }
};

// Returns the address of the function that owns the local object `name` (_ZZ, function, E, object), or 0.
std::uintptr_t owner_of(const Symbols& symbols, const char* name) {
  std::uintptr_t code = 0;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < symbols.count; ++i) {
    if (ELF64_ST_TYPE(symbols.first[i].st_info) != STT_FUNC) continue;
    const char* function = symbols.name(symbols.first[i]) + 2;      // after _Z
    const std::size_t length = std::strlen(symbols.name(symbols.first[i]));
    if (length <= longest || std::strncmp(function - 2, "_Z", 2) != 0) continue;
    if (std::strncmp(name + 3, function, length - 2) != 0 || name[length + 1] != 'E') continue;
    longest = length;
    code = symbols.first[i].st_value;
  }
  return code;
}

// Finds thread-local objects that the source declares __shared__, not a header's own thread_local objects.
std::vector<SharedArray> shared_arrays(const Module& module, const std::vector<std::string>& declared,
                                       std::vector<SharedArray>& guards) {
  const Symbols symbols(module.path);
  std::vector<SharedArray> arrays;
  for (std::size_t i = 0; i < symbols.count; ++i) {
    const auto& symbol = symbols.first[i];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF) continue;
    const char* name = symbols.name(symbol);
    if (std::strncmp(name, "_ZGV", 4) == 0) continue;  // the compiler's note that an array of a class is constructed
    const std::string text = demangle(name);
    if (text.starts_with("guard variable for ")) guards.push_back({"", "", "", 0, symbol.st_value, symbol.st_size});
    const auto split = text.rfind("::");
    const std::string variable = split == std::string::npos ? text : text.substr(split + 2);
    if (variable != "simt_storage" && std::find(declared.begin(), declared.end(), variable) == declared.end()) continue;
    const bool local = std::strncmp(name, "_ZZ", 3) == 0 && split != std::string::npos;
    const std::string function = local ? text.substr(0, split) : "";
    const std::uintptr_t code = local ? owner_of(symbols, name) : 0;
    arrays.push_back({variable, local ? base_name(function) : "", function, code ? module.base + code : 0,
                      symbol.st_value, symbol.st_size});
  }
  return arrays;
}

// Returns the names that the extension lists in a text of its own, with a comma before and after each.
std::string listed(const Module& module, const Symbols& symbols, const char* text) {
  for (std::size_t i = 0; i < symbols.count; ++i)
    if (symbols.first[i].st_shndx != SHN_UNDEF && std::strcmp(symbols.name(symbols.first[i]), text) == 0)
      return std::string(",") + reinterpret_cast<const char*>(module.base + symbols.first[i].st_value);
  return "";
}

Variable::Kind kind_of(const Module& module, const Variable& variable, const std::string& constants,
                       const std::string& hosts) {
  const std::string name = "," + variable.name + ",";
  if (constants.find(name) != std::string::npos) return Variable::constant;
  // What cannot be written, such as a const variable, the compiler also takes for its value in device code.
  const std::uintptr_t at = module.base + variable.offset;
  const bool writable = at >= module.data_low && at < module.data_high;
  return writable && hosts.find(name) != std::string::npos ? Variable::host : Variable::device;
}

std::vector<Variable> variables_of(const Module& module) {
  const Symbols symbols(module.path);
  const std::string constants = listed(module, symbols, "simt_constant_names"),
                    hosts = listed(module, symbols, "simt_host_names");
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < symbols.count; ++i) {
    const auto& symbol = symbols.first[i];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
    const char* const name = symbols.name(symbol);
    const std::string text = demangle(name);
    if (text.starts_with("std::")) continue;  // not a kernel's variable
    // The compiler's own: tables and type information (_ZT), guards and temporaries (_ZG), and names with a dot, which
    // it also gives to a function's static variables of the C start-up code.
    const bool made = std::strncmp(name, "_ZT", 3) == 0 || std::strncmp(name, "_ZG", 3) == 0 ||
                      (std::strncmp(name, "_Z", 2) != 0 && std::strchr(name, '.'));
    const bool own = made || text.starts_with("__") || text.starts_with("simt");
    const auto split = text.rfind("::");
    variables.push_back({own                          ? ""
                         : split == std::string::npos ? text
                                                      : text.substr(split + 2),
                         symbol.st_value, symbol.st_size});
    const bool local = std::strncmp(name, "_ZZ", 3) == 0;  // a static variable of a function
    if (!own && !local) variables.back().kind = kind_of(module, variables.back(), constants, hosts);
  }
  return variables;
}

std::vector<std::string> split_names(const char* names) {
  std::vector<std::string> result;
  std::string name;
  for (const char* at = names ? names : ""; *at; ++at) {
    if (*at == ',') {
      result.push_back(name);
      name.clear();
    } else {
      name += *at;
    }
  }
  return result;
}

// "void ns::k<float, 4>(int)" -> "k<float, 4>"
std::string name_with_arguments(const std::string& function) {
  std::size_t start = 0, depth = 0, end = function.size();
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (c == '<')
      ++depth;
    else if (c == '>')
      --depth;
    else if (depth > 0)
      continue;
    else if (c == ' ' || c == ':')
      start = i + 1;
    else if (c == '(' && function.compare(i, 21, "(anonymous namespace)") != 0) {
      end = i;
      break;
    }
  }
  return function.substr(start, end - start);
}

// Returns the module's kernels by their addresses, with their entries in `lines`.
std::map<std::uintptr_t, KernelHead> heads_of(const Module& module, const char* lines) {
  std::map<std::string, KernelHead> known;
  for (std::istringstream all(lines ? lines : ""); all.good();) {
    KernelHead head;
    std::string name, defined, bounds;
    std::getline(all, name, '\t');
    std::getline(all, head.parameters, '\t');
    std::getline(all, defined, '\t');
    std::getline(all, bounds);
    head.defined = std::atoi(defined.c_str());
    head.max_threads = std::atoi(bounds.c_str());
    known.emplace(name, head);
  }
  std::map<std::uintptr_t, KernelHead> heads;
  const Symbols symbols(module.path);
  for (std::size_t i = 0; i < symbols.count; ++i) {
    const auto& symbol = symbols.first[i];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
    const std::string text = demangle(symbols.name(symbol));
    const std::string name = base_name(text);
    if (std::find(module.kernels.begin(), module.kernels.end(), name) == module.kernels.end()) continue;
    const auto found = known.find(name);
    KernelHead head = found == known.end() ? KernelHead{} : found->second;
    head.name = name_with_arguments(text);
    heads.emplace(module.base + symbol.st_value, head);
  }
  return heads;
}

bool is_probed(const Module& module) {
  const Symbols symbols(module.path);
  return std::any_of(symbols.first, symbols.first + symbols.count, [&](const ElfW(Sym) & symbol) {
    return symbol.st_shndx != SHN_UNDEF && std::strcmp(symbols.name(symbol), "simt_probes_accesses") == 0;
  });
}

}  // namespace

std::string base_name(const std::string& function) {
  // Cut the parameter list and template arguments off the end, then take the last identifier.
  const std::string unnamed = "(anonymous namespace)::";
  std::string text = function;
  for (auto at = text.find(unnamed); at != std::string::npos; at = text.find(unnamed)) text.erase(at, unnamed.size());
  int depth = 0;
  std::size_t end = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<')
      ++depth;
    else if (text[i] == '>')
      --depth;
    else if (text[i] == '(' && depth == 0 && i > 0) {
      end = i;
      break;
    }
  }
  text.resize(end);
  if (!text.empty() && text.back() == '>') {
    int open = 0;
    std::size_t i = text.size();
    while (i-- > 0) {
      if (text[i] == '>') ++open;
      if (text[i] == '<' && --open == 0) break;
    }
    text.resize(i == std::string::npos ? 0 : i);
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const auto split = text.find_last_of(": *&");
  return split == std::string::npos ? text : text.substr(split + 1);
}

char* Module::address_of(const SharedArray& array) const {
  std::size_t index[2] = {tls_id, array.offset};
  return static_cast<char*>(__tls_get_addr(index));
}

bool Module::in_thread_block(std::uintptr_t address) const {
  std::size_t index[2] = {tls_id, 0};
  return tls_bytes && address - reinterpret_cast<std::uintptr_t>(__tls_get_addr(index)) < tls_bytes;
}

bool find_library(const void* symbol, Module& module) {
  Search search{reinterpret_cast<std::uintptr_t>(symbol), &module};
  dl_iterate_phdr(match, &search);
  return search.found;
}

const Module* register_module(const void* symbol, const char* kernels, const char* shared, const char* heads) {
  Module module{};
  if (!find_library(symbol, module)) return nullptr;
  module.kernels = split_names(kernels);
  module.shared = shared_arrays(module, split_names(shared), module.guards);
  module.variables = variables_of(module);
  module.heads = heads_of(module, heads);
  module.probed = is_probed(module);
  std::lock_guard lock(mutex);
  for (auto& known : modules())
    if (known.base == module.base) {
      known = module;
      return &known;
    }
  modules().push_back(module);
  return &modules().back();
}

const Module* module_of(std::uintptr_t code) {
  std::lock_guard lock(mutex);
  for (const auto& module : modules())
    if (module.contains(code)) return &module;
  return nullptr;
}

}  // namespace simt
