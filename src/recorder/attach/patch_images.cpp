#include "src/recorder/attach/patch_images.hpp"

#include <absl/strings/str_cat.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "src/recorder/attach/join_target.hpp"

namespace arctrace {
namespace {

using shim::OfferedPatches;
using shim::WantedModule;
using shim::WantedModules;

absl::StatusOr<std::vector<WantedModule>> read_modules_list(pid_t pid, uint64_t list) {
  const auto all = std::make_unique<WantedModules>();
  iovec to{all.get(), sizeof *all};
  iovec from{reinterpret_cast<void*>(list), sizeof *all};
  if (process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof *all) {
    return absl::ErrnoToStatus(errno, "cannot read from the process");
  }
  const uint32_t count = std::min(all->count, shim::kPatchedModulesMax);
  std::vector<WantedModule> modules(all->modules, all->modules + count);
  for (WantedModule& module : modules) module.name[shim::kModuleNameMax - 1] = '\0';
  return modules;
}

// Where we find the module's file.
std::string path_of(pid_t pid, const WantedModule& module) {
  if (module.is_program != 0) return absl::StrCat("/proc/", pid, "/exe");
  return absl::StrCat("/proc/", pid, "/root", mapped_file(pid, module.low));
}

// Returns the shim's error number.
absl::StatusOr<int> offer(const StoppedThread& thread, const PatchCalls& calls,
                          OfferedPatches head, const std::vector<std::byte>& image) {
  head.size = image.size();
  std::vector<char> bytes(sizeof head + image.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, image.data(), image.size());
  const absl::StatusOr<uint64_t> memory = calls.map(bytes.size());
  if (!memory.ok()) return memory.status();
  if (*memory == reinterpret_cast<uint64_t>(MAP_FAILED)) {
    return absl::ResourceExhaustedError("it has no memory left");
  }
  if (absl::Status written = thread.write(*memory, bytes); !written.ok()) return written;
  absl::StatusOr<int> error = calls.take(*memory);
  calls.unmap(*memory, bytes.size());
  return error;
}

}  // namespace

absl::Status hand_over_patches(const StoppedThread& thread, pid_t pid, uint64_t list,
                               PatchImages& images, const PatchCalls& calls) {
  constexpr int kTries = 3;
  const absl::StatusOr<std::vector<WantedModule>> modules = read_modules_list(pid, list);
  if (!modules.ok()) return modules.status();
  for (const WantedModule& module : *modules) {
    const std::string path = path_of(pid, module);
    absl::StatusOr<int> error = EAGAIN;
    // Other threads may map something else there meanwhile.
    for (int i = 1; i <= kTries && error.ok() && *error == EAGAIN; ++i) {
      error = offer(thread, calls, {module.low, 0, i == kTries ? 1U : 0U, 0},
                    images.image(pid, module, path));
    }
    if (!error.ok()) return error.status();
  }
  return absl::OkStatus();
}

}  // namespace arctrace
