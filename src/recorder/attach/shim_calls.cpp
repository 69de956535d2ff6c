// Calls the shim's functions in a borrowed thread, and hands images over to it.
#include "src/recorder/attach/shim_calls.hpp"

#include <absl/strings/str_cat.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "src/recorder/attach/code_writer.hpp"
#include "src/recorder/attach/process_files.hpp"
#include "src/shim_protocol/joining.hpp"

namespace arctrace::recorder {

ShimSymbols find_shim_symbols(const std::string& shim) {
  const LoadedLibrary file{shim, 0, shim};
  const auto find = [&](const char* name) { return find_function(file, name); };
  return {find("arctrace_want_session"),  find("arctrace_want_handed_session"),
          find("arctrace_end_session"),   find("arctrace_forget_session"),
          find("arctrace_code_changes"),  find("arctrace_code_is_changed"),
          find("arctrace_offer_patches"), find("arctrace_want_report"),
          find("arctrace_wanted_modules")};
}

absl::StatusOr<int> ShimCalls::leave(uint64_t& all_stopped_ns) {
  if (absl::Status status = thread_.check_time(); !status.ok()) return status;
  absl::StatusOr<int> error = call_shim(symbols_.end, 0, 0);
  if (!error.ok() || *error != 0) return error;
  const std::vector<CodeMemory> code = find_own_code(pid_);
  return with_all_stopped(
      [&](StoppedThreads& others) -> absl::StatusOr<int> {
        if (absl::Status status = others.leave_code(code, others_); !status.ok())
          return status;
        return call_shim(symbols_.forget, 0, 0);
      },
      all_stopped_ns);
}

absl::Status ShimCalls::change_code(uint64_t& skipped, uint64_t& all_stopped_ns) {
  if (absl::Status status = thread_.check_time(); !status.ok()) return status;
  int tries_left = 4;
  const CodeWriter writer(pid_, place_.low + symbols_.changes, thread_);
  const absl::StatusOr<bool> has_changes = writer.has_changes();
  if (!has_changes.ok() || !*has_changes) return has_changes.status();
  const absl::StatusOr<int> written = with_all_stopped(
      [&](StoppedThreads& others) -> absl::StatusOr<int> {
        const absl::StatusOr<SkippedChanges> found = writer.write(others, others_);
        if (!found.ok()) return found.status();
        skipped = found->in_use + found->for_good;
        return found->in_use != 0 && --tries_left != 0 ? EAGAIN : 0;
      },
      all_stopped_ns);
  if (!written.ok()) return written.status();
  return call_shim(symbols_.changed, 0, 0).status();
}

absl::StatusOr<int> ShimCalls::with_all_stopped(Act act, uint64_t& all_stopped_ns) {
  constexpr int kTries = 50;
  constexpr auto kPause = std::chrono::milliseconds(2);
  absl::StatusOr<int> error = EAGAIN;
  for (int i = 0; i < kTries; ++i) {
    if (i != 0) std::this_thread::sleep_for(kPause);
    error = try_with_all_stopped(act, all_stopped_ns);
    const bool may_work_later =
        error.ok() ? *error == EAGAIN : absl::IsUnavailable(error.status());
    if (!may_work_later) break;
  }
  return error;
}

absl::StatusOr<int> ShimCalls::try_with_all_stopped(Act act, uint64_t& all_stopped_ns) {
  std::chrono::steady_clock::time_point begin;
  absl::StatusOr<int> error = EAGAIN;
  {
    StoppedThreads others;
    absl::Status stopped = others.stop_all_but(pid_, thread_.tid(), others_);
    error = stopped.ok() ? act(others) : stopped;
    begin = others.since();
  }
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - begin);
  all_stopped_ns = std::max(all_stopped_ns, static_cast<uint64_t>(ns.count()));
  return error;
}

absl::StatusOr<int> ShimCalls::do_step(uint64_t want, uint64_t a, uint64_t b) {
  if (absl::Status status = thread_.check_time(); !status.ok()) return status;
  absl::StatusOr<int> error = call_shim(want, a, b);
  if (!error.ok() || *error != 0) return error;
  return call(place_.dlsym, place_.handle, place_.step);
}

absl::StatusOr<int> ShimCalls::call_shim(uint64_t symbol, uint64_t a, uint64_t b) {
  return call(place_.low + symbol, a, b);
}

absl::StatusOr<int> ShimCalls::call(uint64_t function, uint64_t a, uint64_t b) {
  const absl::StatusOr<uint64_t> result = thread_.call(function, {a, b}, place_.stack);
  if (!result.ok()) return result.status();
  return static_cast<int32_t>(*result) - shim::kJoinResult;
}

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

// The path at which this process finds the module's file.
std::string path_of(pid_t pid, const WantedModule& module) {
  if (module.is_program != 0) return absl::StrCat("/proc/", pid, "/exe");
  return path_to_mapped(pid, module.low);
}

// Memory of the process in which it gets images. The kernel may map it at the very
// addresses at which an image is to be: so it has to be there, and large enough, before
// the image's addresses are chosen.
class HandOver {
 public:
  HandOver(const StoppedThread& thread, const PatchCalls& calls)
      : thread_(thread), calls_(calls) {}
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;
  ~HandOver() { unmap(); }

  bool has_space_for(size_t image_size) const {
    return sizeof(OfferedPatches) + image_size <= size_;
  }
  absl::Status map_for(size_t image_size) {
    unmap();
    const size_t size = std::max(kSizeMin, 2 * (sizeof(OfferedPatches) + image_size));
    const absl::StatusOr<uint64_t> memory = calls_.map(size);
    if (!memory.ok()) return memory.status();
    if (*memory == reinterpret_cast<uint64_t>(MAP_FAILED)) {
      return absl::ResourceExhaustedError("it has no memory left");
    }
    address_ = *memory;
    size_ = size;
    return absl::OkStatus();
  }
  // Returns the shim's error number. REQUIRES: has_space_for().
  absl::StatusOr<int> offer(OfferedPatches head, const std::vector<std::byte>& image) {
    head.size = image.size();
    std::vector<char> bytes(sizeof head + image.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, image.data(), image.size());
    if (absl::Status written = thread_.write(address_, bytes); !written.ok()) {
      return written;
    }
    return calls_.take(address_);
  }

 private:
  static constexpr size_t kSizeMin = size_t{1} << 20;

  void unmap() {
    if (size_ != 0) calls_.unmap(address_, size_);
    size_ = 0;
  }

  const StoppedThread& thread_;
  const PatchCalls& calls_;
  uint64_t address_ = 0;
  size_t size_ = 0;  // 0: nothing is mapped
};

}  // namespace

absl::Status hand_over_patches(const StoppedThread& thread, pid_t pid, uint64_t list,
                               PatchImages& images, const PatchCalls& calls) {
  constexpr int kTries = 3;
  const absl::StatusOr<std::vector<WantedModule>> modules = read_modules_list(pid, list);
  if (!modules.ok()) return modules.status();
  HandOver hand_over(thread, calls);
  for (const WantedModule& module : *modules) {
    const std::string path = path_of(pid, module);
    absl::StatusOr<int> error = EAGAIN;
    // The address may be taken meanwhile: other threads may map memory there.
    for (int i = 1; i <= kTries && error.ok() && *error == EAGAIN; ++i) {
      std::vector<std::byte> image = images.image(pid, module, path);
      while (!hand_over.has_space_for(image.size())) {
        if (absl::Status mapped = hand_over.map_for(image.size()); !mapped.ok()) {
          return mapped;
        }
        image = images.image(pid, module, path);
      }
      error = hand_over.offer({module.low, 0, i == kTries ? 1U : 0U, 0}, image);
    }
    if (!error.ok()) return error.status();
  }
  return absl::OkStatus();
}

}  // namespace arctrace::recorder
