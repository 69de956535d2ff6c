// The names of functions, processes and threads as exports have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/render/safe_name.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// Each name of a function is made once.
class ExportNames {
 public:
  // Both must outlive this object.
  ExportNames(const Definitions& definitions, const Functions& functions)
      : definitions_(definitions), functions_(functions) {}

  const std::string& function(FunctionId function) {
    if (function < known_.size() && known_[function].made) return known_[function].name;
    return make(function);
  }

  // The name of a frame where viewers count frames by their names: "main [inherited by
  // fork]" of one that is no call, else the function's.
  std::string frame(FunctionId function, uint16_t flags);
  // Tells such names apart: a number for each, which is the function's if it is a call.
  static uint64_t frame_id(FunctionId function, uint16_t flags) {
    return uint64_t{flags & unsigned{kFrameCountedElsewhere}} << 32 | function;
  }

  // The program of a process, by the last part of its path.
  std::string process(ProcessIndex process) const;
  // The thread's last name, else its program's.
  std::string thread(ThreadIndex thread) const;
  // The same as a field of its own, beside which no number stands: "process 7" of one
  // whose program has no name either.
  std::string thread_field(ThreadIndex thread) const;

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
