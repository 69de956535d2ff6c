// Compares functions in the loaded modules with what libc's dlsym() and dladdr() find.
#include "writer_shim/elf/symbol_search.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <elf.h>
#include <link.h>

#include <string>
#include <vector>

#include "writer_shim/elf/loaded_objects.hpp"

namespace arctrace::shim {
namespace {

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

struct Known {
  std::string name;
  uintptr_t address;
  uint64_t size;
};

// The functions that the libraries of this process have in .dynsym. GNU's hash tables do
// not give the number of symbols; the table of names comes after that of symbols.
std::vector<Known> functions_of_libraries() {
  std::vector<Known> found;
  const auto visit = [](dl_phdr_info* info, size_t /*size*/, void* data) {
    ModuleImage image;
    if (info->dlpi_name[0] != '/' || !read_module(*info, image)) return 0;
    const auto* end = reinterpret_cast<const ElfW(Sym)*>(image.strings);
    for (const ElfW(Sym)* symbol = image.symbols; symbol + 1 <= end; ++symbol) {
      if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) {
        continue;
      }
      static_cast<std::vector<Known>*>(data)->push_back({image.strings + symbol->st_name,
                                                         image.bias + symbol->st_value,
                                                         symbol->st_size});
    }
    return 0;
  };
  dl_iterate_phdr(visit, &found);
  return found;
}

TEST_CASE("a name is looked up as dlsym() does") {
  const std::vector<Known> functions = functions_of_libraries();
  CHECK(functions.size() > 3000);  // libc and libstdc++
  size_t wrong = 0;
  for (const Known& known : functions) {
    const char* name = known.name.c_str();
    const uintptr_t found = find_function(name, SearchFrom::kProgram);
    if (found == address_of(dlsym(RTLD_DEFAULT, name))) continue;
    if (++wrong < 10) FAIL_CHECK(known.name << " is found elsewhere");
  }
  CHECK(wrong == 0);
}

TEST_CASE("indirect functions are resolved, and absent ones are not found") {
  for (const char* name : {"memcpy", "strlen", "strchr", "time"}) {
    CHECK(find_function(name, SearchFrom::kProgram) ==
          address_of(dlsym(RTLD_DEFAULT, name)));
  }
  CHECK(find_function("arctrace_absent", SearchFrom::kProgram) == 0);
  CHECK(find_function("", SearchFrom::kProgram) == 0);
}

size_t count_functions(const ModuleImage& image, SymbolRange range) {
  size_t count = 0;
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const ElfW(Sym)& symbol = image.symbols[i];
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (is_function && symbol.st_shndx != SHN_UNDEF) ++count;
  }
  return count;
}

TEST_CASE("a module's tables tell which symbols it has for others") {
  const auto visit = [](dl_phdr_info* info, size_t /*size*/, void* data) {
    ModuleImage image;
    if (info->dlpi_name[0] == '/' && read_module(*info, image)) {
      *static_cast<size_t*>(data) += count_functions(image, symbols_for_others(image));
    }
    return 0;
  };
  size_t count = 0;
  dl_iterate_phdr(visit, &count);
  CHECK(count == functions_of_libraries().size());

  // The program itself has tables of both kinds.
  const auto compare = [](dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
    ModuleImage image;
    CHECK(read_module(*info, image));
    CHECK(image.gnu_hash != nullptr);
    const size_t by_gnu = count_functions(image, symbols_for_others(image));
    image.gnu_hash = nullptr;
    CHECK(image.sysv_hash != nullptr);
    CHECK(count_functions(image, symbols_for_others(image)) == by_gnu);
    image.sysv_hash = nullptr;
    CHECK(count_functions(image, symbols_for_others(image)) == 0);
    return 1;
  };
  dl_iterate_phdr(compare, nullptr);
}

}  // namespace
}  // namespace arctrace::shim

// The program's own definition comes first, libc's next.
extern "C" __attribute__((visibility("default"), noinline)) const char*
gnu_get_libc_version() {
  return "the program's";
}

namespace arctrace::shim {
namespace {

TEST_CASE("the search for the next definition begins after this module") {
  using Version = const char*();
  const uintptr_t first = find_function("gnu_get_libc_version", SearchFrom::kProgram);
  const uintptr_t next = find_function("gnu_get_libc_version", SearchFrom::kNext);
  CHECK(first == address_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  CHECK(next == address_of(dlsym(RTLD_NEXT, "gnu_get_libc_version")));
  CHECK(std::string(reinterpret_cast<Version*>(next)()).starts_with("2."));
}

TEST_CASE("the file and the size of a function") {
  size_t wrong = 0;
  for (const Known& known : functions_of_libraries()) {
    const FunctionFile file = file_of_function(known.address, known.name.c_str());
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(known.address), &info);
    const bool is_right = file.path == std::string(info.dli_fname) &&
                          file.size == known.size && file.module.contains(known.address);
    if (!is_right) ++wrong;
  }
  CHECK(wrong == 0);
  const uintptr_t here = address_of(reinterpret_cast<void*>(&functions_of_libraries));
  const std::string path = file_of_function(here, "").path;
  CHECK(path.substr(path.rfind('/') + 1) == "shim_test");
  CHECK(file_of_function(1, "").path == std::string());
}

// The program is linked with hash tables of both kinds, and exports what it has.
TEST_CASE("a module that has only the older hash table") {
  struct Counts {
    size_t names = 0;
    size_t wrong = 0;
  } all;
  const auto visit = [](dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& counts = *static_cast<Counts*>(data);
    ModuleImage image;
    REQUIRE(read_module(*info, image));
    REQUIRE(image.gnu_hash != nullptr);
    REQUIRE(image.sysv_hash != nullptr);
    image.gnu_hash = nullptr;
    const uint32_t symbol_count = image.sysv_hash[1];
    for (uint32_t i = 1; i < symbol_count; ++i) {
      const ElfW(Sym)& symbol = image.symbols[i];
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) {
        continue;
      }
      const char* name = image.strings + symbol.st_name;
      const uintptr_t address = image.bias + symbol.st_value;
      ++counts.names;
      const bool is_right = find_in_module(image, name).address == address &&
                            find_in_module(image, name, address).size == symbol.st_size &&
                            find_in_module(image, name, address + 1).address == 0;
      if (!is_right && ++counts.wrong < 10) FAIL_CHECK(name << " is not found");
    }
    CHECK(find_in_module(image, "arctrace_absent").address == 0);
    CHECK(find_in_module(image, "dlsym").address == 0);  // dlsym is another module's
    return 1;                                            // the program is the first one
  };
  dl_iterate_phdr(visit, &all);
  CHECK(all.names > 1000);
  CHECK(all.wrong == 0);
}

TEST_CASE("the module at an address, with its unwind tables") {
  const auto puts = address_of(dlsym(RTLD_DEFAULT, "puts"));
  const LoadedObject object = find_loaded_object(puts);
  dl_find_object known{};
  REQUIRE(_dl_find_object(reinterpret_cast<void*>(puts), &known) == 0);
  CHECK(object.eh_frame_hdr == known.dlfo_eh_frame);
  CHECK(object.range.contains(puts));
  CHECK(find_loaded_object(1).eh_frame_hdr == nullptr);
}

}  // namespace
}  // namespace arctrace::shim
