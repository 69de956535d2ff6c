// The shim's functions that the borrowed thread calls, and the data that is exchanged
// with them: the steps of joining and leaving a session, and the images by which
// functions are patched.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"
#include "src/shim_protocol/joining.hpp"

namespace arctrace::recorder {

// Where the shim's file has the symbols that are called or read. 0: it has no such
// symbol.
struct ShimSymbols {
  uint64_t want;
  uint64_t want_handed;
  uint64_t end;
  uint64_t forget;
  uint64_t changes;  // data
  uint64_t changed;
  uint64_t offer;
  uint64_t report;
  uint64_t modules;  // data

  bool are_complete() const {
    return want != 0 && want_handed != 0 && end != 0 && forget != 0 && changes != 0 &&
           changed != 0 && offer != 0 && report != 0 && modules != 0;
  }
};

ShimSymbols find_shim_symbols(const std::string& shim);

// Addresses in the process.
struct ShimPlace {
  uint64_t low;     // where the shim is loaded
  uint64_t dlsym;   // that function
  uint64_t handle;  // dlopen()'s result for the shim
  uint64_t step;    // the name of the function whose resolver does the wanted step
  uint64_t stack;   // the end of the stack for the functions that are called
};

class ShimCalls {
 public:
  // `others`: for all threads but the borrowed one, `thread`, when they are stopped.
  ShimCalls(StoppedThread& thread, HurriedThread& others, pid_t pid,
            const ShimSymbols& symbols, const ShimPlace& place)
      : thread_(thread), others_(others), pid_(pid), symbols_(symbols), place_(place) {}

  // The functions below return an error number, 0 for none.

  // `session`: the address of the buffer's path, or the process' descriptor of it.
  absl::StatusOr<int> join(uint64_t session, bool is_handed, uint64_t options) {
    return do_step(is_handed ? symbols_.want_handed : symbols_.want, session, options);
  }
  // Has the shim take the image at this address.
  absl::StatusOr<int> take_patches(uint64_t address) {
    return do_step(symbols_.offer, address, 0);
  }
  absl::StatusOr<int> report_patches() { return do_step(symbols_.report, 0, 0); }
  uint64_t wanted_modules() const { return place_.low + symbols_.modules; }
  // Has the process leave a session that is over. All threads are stopped for a moment,
  // so that each is seen outside of the code that records. If the recorder is killed
  // meanwhile, nothing is recorded any more, so the threads may also run.
  absl::StatusOr<int> leave(uint64_t& all_stopped_ns);
  // Makes the changes of code that the shim has noted, while all threads are stopped.
  // `skipped`: how many were skipped. Error: none was made.
  absl::Status change_code(uint64_t& skipped, uint64_t& all_stopped_ns);

 private:
  using Act = absl::FunctionRef<absl::StatusOr<int>(StoppedThreads&)>;
  // Calls act() while all threads but the borrowed one are stopped, for a moment that is
  // measured. It is called again if it returns EAGAIN or is unavailable.
  absl::StatusOr<int> with_all_stopped(Act act, uint64_t& all_stopped_ns);
  absl::StatusOr<int> try_with_all_stopped(Act act, uint64_t& all_stopped_ns);
  // `want`: the shim's function that sets which step is to be done.
  absl::StatusOr<int> do_step(uint64_t want, uint64_t a, uint64_t b);
  absl::StatusOr<int> call_shim(uint64_t symbol, uint64_t a, uint64_t b);
  absl::StatusOr<int> call(uint64_t function, uint64_t a, uint64_t b);

  StoppedThread& thread_;
  HurriedThread& others_;
  pid_t pid_;
  const ShimSymbols& symbols_;
  ShimPlace place_;
};

// Patches functions of a running process: the recorder's steps between reading the shim's
// list of modules and writing the jumps, while all threads are stopped.

// Makes the images, by the patterns that were asked for.
class PatchImages {
 public:
  PatchImages() = default;
  virtual ~PatchImages() = default;
  PatchImages(const PatchImages&) = delete;
  PatchImages& operator=(const PatchImages&) = delete;

  // Analyses modules that the process has loaded, before it is stopped: all for which
  // image() will probably be called.
  virtual void prepare(pid_t pid) = 0;
  // The image of a module (src/recorder/patch_image/patch_image.hpp), whose file is at
  // `path`, for the addresses that are free in the process now.
  virtual std::vector<std::byte> image(pid_t pid, const shim::WantedModule& module,
                                       const std::string& path) = 0;
};

// The functions that the borrowed thread calls; each returns an error, or the function's
// result.
struct PatchCalls {
  absl::FunctionRef<absl::StatusOr<uint64_t>(uint64_t size)> map;
  absl::FunctionRef<void(uint64_t address, uint64_t size)> unmap;
  // Has the shim take the image at `address` (shim::OfferedPatches); returns an error
  // number.
  absl::FunctionRef<absl::StatusOr<int>(uint64_t address)> take;
};

// Hands over an image for each module in the shim's list, at `list`. Error: some modules
// have none.
absl::Status hand_over_patches(const StoppedThread& thread, pid_t pid, uint64_t list,
                               PatchImages& images, const PatchCalls& calls);

}  // namespace arctrace::recorder
