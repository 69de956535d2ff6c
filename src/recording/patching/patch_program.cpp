#include "src/recording/patching/patch_program.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "src/recorder/patch_image/address_space.hpp"
#include "src/recorder/patch_image/patch_image.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/recording/patching/patch_request.hpp"
#include "src/shim_protocol/environment.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patch_table.hpp"

namespace arctrace::recording {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& text) {
    if (!absl::SimpleAtoi(text, &number_)) number_ = -1;
  }
  int number() const { return number_; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", number_); }

  std::optional<std::string> read_all() const {
    std::string all;
    char buffer[1 << 14];
    for (;;) {
      const ssize_t size = ::read(number_, buffer, sizeof buffer);
      if (size < 0) return std::nullopt;
      if (size == 0) return all;
      all.append(buffer, static_cast<size_t>(size));
    }
  }

  bool write_all(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(number_, bytes.data(), bytes.size());
      if (written <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return true;
  }

 private:
  int number_ = -1;
};

// The file's own name, by which its debug file is found, as long as it is still that
// file.
std::string path_of(const Descriptor& program) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink(program.path(), error);
  if (error || !std::filesystem::equivalent(path, program.path(), error)) {
    return program.path();
  }
  return path;
}

std::vector<std::byte> image_for(const Descriptor& program, const Descriptor& maps,
                                 uint64_t bias, const std::string& library) {
  const auto options = std::make_unique<shim::ShimOptions>();
  shim::decode_options(std::getenv(shim::kOptionsVariable), *options);
  const std::string path = path_of(program);
  const auto planned = plan_module(path, true);
  PatchRequest request;
  request.bias = bias;
  if (!planned.ok()) return refused_patch_image(ARCTRACE_PATCH_UNREADABLE, request);
  request = patch_request(*options, *planned, path, library, bias);
  if (!runtime_that_walks_stacks(planned->code).empty()) {
    return refused_patch_image(ARCTRACE_PATCH_RUNTIME, request);
  }
  const std::optional<std::string> text = maps.read_all();
  if (!text) return refused_patch_image(ARCTRACE_PATCH_NO_ROOM, request);
  return make_patch_image(planned->code, request, AddressSpace(*text));
}

}  // namespace

int make_patches(const std::vector<std::string>& arguments) {
  constexpr size_t kArguments = 5;
  uint64_t bias = 0;
  if (arguments.size() != kArguments || !absl::SimpleHexAtoi(arguments[3], &bias)) {
    return 2;
  }
  const Descriptor image(arguments[2]);
  const std::vector<std::byte> bytes =
      image_for(Descriptor(arguments[0]), Descriptor(arguments[1]), bias, arguments[4]);
  return image.write_all(bytes) ? 0 : 2;
}

}  // namespace arctrace::recording
