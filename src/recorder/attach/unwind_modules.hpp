// The modules of a process as libdw knows them, to unwind its stacks.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <memory>

namespace arctrace {

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
using UnwindModules = std::unique_ptr<Dwfl, EndDwfl>;

// By their own files alone, without debug information of others. Null: the process cannot
// be read.
UnwindModules report_modules(pid_t pid);

}  // namespace arctrace
