// An image has only functions whose code in the process is as in the file. Functions that
// an earlier recording has patched have an image already.
#include "src/recording/patching/joined_patches.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <arctrace/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "src/recorder/attach/process_files.hpp"
#include "src/recorder/patch_image/patch_image.hpp"
#include "src/recorder/patch_image/trampoline.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/recording/patching/patch_request.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recording {
namespace {

namespace fs = std::filesystem;

std::string maps_of(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/maps"));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// The memory of images, as lines of /proc/PID/maps have it.
std::vector<recorder::CodeRange> images_in(const std::string& maps) {
  std::vector<recorder::CodeRange> images;
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    if (!absl::StrContains(line, absl::StrCat("/memfd:", shim::kPatchFileName, " "))) {
      continue;
    }
    const std::vector<absl::string_view> range =
        absl::StrSplit(line.substr(0, line.find(' ')), '-');
    recorder::CodeRange image;
    if (range.size() == 2 && absl::SimpleHexAtoi(range[0], &image.start) &&
        absl::SimpleHexAtoi(range[1], &image.end)) {
      images.push_back(image);
    }
  }
  return images;
}

// The code of a module as it is in the process.
class ProcessCode {
 public:
  ProcessCode(pid_t pid, const recorder::ModuleCode& code, uint64_t bias) {
    for (const recorder::ModuleSegment& segment : code.segments) {
      if (!segment.executable) continue;
      std::vector<std::byte> bytes(segment.bytes.size());
      iovec to{bytes.data(), bytes.size()};
      iovec from{reinterpret_cast<void*>(bias + segment.address), bytes.size()};
      const ssize_t size = process_vm_readv(pid, &to, 1, &from, 1, 0);
      bytes.resize(size < 0 ? 0 : static_cast<size_t>(size));
      parts_.emplace_back(segment.address, std::move(bytes));
    }
  }

  // `size` bytes from this address in the file on; empty: they cannot be read.
  std::span<const std::byte> at(uint64_t address, size_t size) const {
    for (const auto& [begin, bytes] : parts_) {
      const uint64_t offset = address - begin;
      if (address >= begin && offset <= bytes.size() && size <= bytes.size() - offset) {
        return std::span(bytes).subspan(offset, size);
      }
    }
    return {};
  }

 private:
  std::vector<std::pair<uint64_t, std::vector<std::byte>>> parts_;
};

// The target of the jump at this address of the process; 0: there is none.
uint64_t jump_target(std::span<const std::byte> bytes, uint64_t address) {
  int32_t distance = 0;
  if (bytes.size() < shim::kPatchJumpSize || bytes[0] != std::byte{recorder::kJumpOpcode})
    return 0;
  std::memcpy(&distance, bytes.data() + 1, sizeof distance);
  return address + shim::kPatchJumpSize + static_cast<uint64_t>(int64_t{distance});
}

// Moves functions that cannot be patched now out of the request.
void sort_out_changed(const ProcessCode& code,
                      const std::vector<recorder::CodeRange>& images,
                      recorder::PatchRequest& request) {
  recorder::SkippedFunctions changed;
  std::erase_if(request.functions, [&](const recorder::FunctionPlan* plan) {
    const uint64_t at = plan->start + plan->kept;
    const std::span<const std::byte> now = code.at(at, plan->displaced);
    const auto* original = reinterpret_cast<const std::byte*>(plan->original.data());
    if (!now.empty() && std::equal(now.begin(), now.end(), original)) return false;
    const uint64_t target = jump_target(now, request.bias + at);
    const bool is_ours = std::any_of(images.begin(), images.end(),
                                     [target](const recorder::CodeRange& image) {
                                       return target >= image.start && target < image.end;
                                     });
    if (is_ours) {
      request.again.push_back(
          {request.bias + plan->start, request.named.contains(plan) ? 1U : 0U});
    } else {
      ++changed.count;
      changed.listed.push_back(plan->start);
    }
    return true;
  });
  if (changed.count != 0) request.skipped[ARCTRACE_PATCH_CHANGED] = std::move(changed);
}

// Whether a pattern may ask for functions of the library; programs may ask for it by a
// name other than its file's.
bool may_ask_for(const shim::ShimOptions& options, const std::string& file) {
  for (size_t i = 0; i < options.pattern_count; ++i) {
    const shim::Pattern& pattern = options.patterns[i];
    if (pattern.kind != shim::Pattern::Kind::kPatch) continue;
    const shim::PatchPattern split = shim::split_patch_pattern(pattern.text);
    if (!split.library.empty() && (shim::is_for_module(split, file) ||
                                   std::string_view(file).starts_with(split.library))) {
      return true;
    }
  }
  return false;
}

}  // namespace

JoinedPatches::JoinedPatches(const std::string& options) : text_(options) {
  shim::decode_options(text_.c_str(), *options_);
}

JoinedPatches::Planned& JoinedPatches::plan(const std::string& path) {
  const auto found = plans_.find(path);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(path, Planned{plan_module(path, true), {}}).first->second;
}

const recorder::PatchRequest& JoinedPatches::request(const std::string& path,
                                                     const std::string& name) {
  Planned& planned = plan(path);
  const auto found = planned.requests.find(name);
  if (found != planned.requests.end()) return found->second;
  recorder::PatchRequest made;
  if (planned.module.ok())
    made = patch_request(*options_, *planned.module, path, name, 0);
  return planned.requests.emplace(name, std::move(made)).first->second;
}

void JoinedPatches::prepare(pid_t pid) {
  (void)request(absl::StrCat("/proc/", pid, "/exe"), "");
  for (const recorder::Mapping& mapping : recorder::read_mappings(pid)) {
    const std::string name = fs::path(mapping.path).filename();
    if (!mapping.is_executable || !may_ask_for(*options_, name)) continue;
    (void)request(recorder::path_to(pid, mapping), name);
  }
}

std::vector<std::byte> JoinedPatches::image(pid_t pid, const shim::WantedModule& module,
                                            const std::string& path) {
  recorder::PatchRequest request = this->request(path, module.name);
  request.bias = module.bias;
  const absl::StatusOr<PlannedModule>& planned = plan(path).module;
  if (!planned.ok())
    return recorder::refused_patch_image(ARCTRACE_PATCH_UNREADABLE, request);
  if (!runtime_that_walks_stacks(planned->code).empty()) {
    return recorder::refused_patch_image(ARCTRACE_PATCH_RUNTIME, request);
  }
  const std::string maps = maps_of(pid);
  sort_out_changed(ProcessCode(pid, planned->code, module.bias), images_in(maps),
                   request);
  return recorder::make_patch_image(planned->code, request, recorder::AddressSpace(maps));
}

}  // namespace arctrace::recording
