// Names as exports have them: valid UTF-8 without control characters, of bounded length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// A longer name loses what follows this many bytes. Viewers show a few dozen; some of
// them fail on a megabyte.
inline constexpr size_t kExportNameMax = 4096;

// `name`, escaped as on a terminal. If it is too long it ends with "..." and a number
// that tells it apart from other names with the same beginning.
std::string export_name(std::string_view name);

// The names of functions, processes and threads, each made once.
class ExportNames {
 public:
  // Both must outlive this object.
  ExportNames(const Definitions& definitions, const Functions& functions)
      : definitions_(definitions), functions_(functions) {}

  const std::string& function(FunctionId function) {
    if (function < known_.size() && known_[function].made) return known_[function].name;
    return make(function);
  }

  // The program of a process, by the last part of its path.
  std::string process(ProcessIndex process) const;
  // The thread's last name, else its program's.
  std::string thread(ThreadIndex thread) const;

 private:
  struct Known {
    bool made = false;
    std::string name;
  };
  const std::string& make(FunctionId function);

  const Definitions& definitions_;
  const Functions& functions_;
  std::vector<Known> known_;  // by FunctionId
};

}  // namespace arctrace::reader
