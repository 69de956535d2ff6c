// The steps of joining and leaving a session, which the borrowed thread calls in the
// shim.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "src/recorder/attach/priorities.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"

namespace arctrace {

// Where the shim has what is called, and read, in its file. 0: it has no such symbol.
struct ShimSymbols {
  uint64_t want;
  uint64_t end;
  uint64_t forget;
  uint64_t changes;  // data
  uint64_t changed;
  uint64_t offer;
  uint64_t report;
  uint64_t modules;  // data

  bool are_complete() const {
    return want != 0 && end != 0 && forget != 0 && changes != 0 && changed != 0 &&
           offer != 0 && report != 0 && modules != 0;
  }
};

// `shim`: as the process `pid` sees it.
ShimSymbols find_shim_symbols(pid_t pid, const std::string& shim);

// Addresses in the process.
struct ShimPlace {
  uint64_t low;     // where the shim is loaded
  uint64_t dlsym;   // that function
  uint64_t handle;  // dlopen()'s result
  uint64_t step;    // the name of the function whose resolver does what is wanted
  uint64_t stack;   // for what is called: its end
};

class ShimCalls {
 public:
  // `others`: for all threads but the borrowed one, `thread`, when they are stopped.
  ShimCalls(StoppedThread& thread, HurriedThread& others, pid_t pid,
            const ShimSymbols& symbols, const ShimPlace& place)
      : thread_(thread), others_(others), pid_(pid), symbols_(symbols), place_(place) {}

  // These return an error number, 0 for none.

  absl::StatusOr<int> join(uint64_t session, uint64_t options) {
    return do_step(symbols_.want, session, options);
  }
  // The image at this address is taken.
  absl::StatusOr<int> take_patches(uint64_t address) {
    return do_step(symbols_.offer, address, 0);
  }
  absl::StatusOr<int> report_patches() { return do_step(symbols_.report, 0, 0); }
  uint64_t wanted_modules() const { return place_.low + symbols_.modules; }
  // Has the process leave a session that is over. All threads stand still for a moment,
  // to be seen outside of what records. If we are killed meanwhile, nothing is recorded
  // any more, so that they may also run.
  absl::StatusOr<int> leave(uint64_t& all_stopped_ns);
  // Makes the changes of code that the shim has noted, while all threads stand still.
  // `left`: how many were not made. Error: none was.
  absl::Status change_code(uint64_t& left, uint64_t& all_stopped_ns);

 private:
  using Act = absl::FunctionRef<absl::StatusOr<int>(StoppedThreads&)>;
  // Does something while all threads but ours stand still, for a moment that is measured.
  // Tried again if it returns EAGAIN or is unavailable.
  absl::StatusOr<int> with_all_stopped(Act act, uint64_t& all_stopped_ns);
  absl::StatusOr<int> try_with_all_stopped(Act act, uint64_t& all_stopped_ns);
  // `want`: the shim's function that says what is wanted.
  absl::StatusOr<int> do_step(uint64_t want, uint64_t a, uint64_t b);
  absl::StatusOr<int> call_shim(uint64_t symbol, uint64_t a, uint64_t b);
  absl::StatusOr<int> call(uint64_t function, uint64_t a, uint64_t b);

  StoppedThread& thread_;
  HurriedThread& others_;
  pid_t pid_;
  const ShimSymbols& symbols_;
  ShimPlace place_;
};

}  // namespace arctrace
