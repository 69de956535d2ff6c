#include "src/recorder/attach/unwind_modules.hpp"

namespace arctrace {
namespace {

int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                  GElf_Word, char**) {
  return -1;  // unwind tables and the symbols that it has are in the file itself
}

const Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                   .find_debuginfo = no_debug_file,
                                   .section_address = dwfl_offline_section_address,
                                   .debuginfo_path = nullptr};

}  // namespace

UnwindModules report_modules(pid_t pid) {
  UnwindModules dwfl(dwfl_begin(&kCallbacks));
  if (dwfl == nullptr || dwfl_linux_proc_report(dwfl.get(), pid) != 0 ||
      dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) {
    return nullptr;
  }
  return dwfl;
}

}  // namespace arctrace
