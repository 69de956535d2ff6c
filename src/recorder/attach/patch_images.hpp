// Has functions of a process patched that runs: what the recorder does between the shim's
// list of modules and the jumps that are written while all threads stand still.
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
#include "src/shim_protocol/joined_patches.hpp"

namespace arctrace {

// Makes the images, by the patterns that were asked for.
class PatchImages {
 public:
  PatchImages() = default;
  virtual ~PatchImages() = default;
  PatchImages(const PatchImages&) = delete;
  PatchImages& operator=(const PatchImages&) = delete;

  // Analyses modules that the process has loaded, before it is stopped: all that image()
  // will probably be asked for.
  virtual void prepare(pid_t pid) = 0;
  // The image of a module (src/recorder/patch_image/patch_image.hpp), whose file is at
  // `path`, for the addresses that are free in the process now.
  virtual std::vector<std::byte> image(pid_t pid, const shim::WantedModule& module,
                                       const std::string& path) = 0;
};

// What the borrowed thread calls; each returns an error, or the function's result.
struct PatchCalls {
  absl::FunctionRef<absl::StatusOr<uint64_t>(uint64_t size)> map;
  absl::FunctionRef<void(uint64_t address, uint64_t size)> unmap;
  // Has the shim take what is at `address` (shim::OfferedPatches); an error number.
  absl::FunctionRef<absl::StatusOr<int>(uint64_t address)> take;
};

// Hands over an image for each module in the shim's list, at `list`. Error: some modules
// have none.
absl::Status hand_over_patches(const StoppedThread& thread, pid_t pid, uint64_t list,
                               PatchImages& images, const PatchCalls& calls);

}  // namespace arctrace
