// Has functions of running processes patched: record -p PID -P.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/recorder/attach/shim_calls.hpp"
#include "src/recorder/patch_image/patch_image.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

class JoinedPatches final : public recorder::PatchImages {
 public:
  // `options`: the shim's, encoded.
  explicit JoinedPatches(const std::string& options);

  void prepare(pid_t pid) override;
  std::vector<std::byte> image(pid_t pid, const shim::WantedModule& module,
                               const std::string& path) override;

 private:
  // The parts of a request that do not depend on the process: a module's file, and which
  // of its functions are patched, by its name as patterns ask for it.
  struct Planned {
    absl::StatusOr<PlannedModule> module;
    std::map<std::string, recorder::PatchRequest> requests;
  };
  Planned& plan(const std::string& path);
  const recorder::PatchRequest& request(const std::string& path, const std::string& name);

  std::string text_;  // the text of the options
  std::unique_ptr<shim::ShimOptions> options_ = std::make_unique<shim::ShimOptions>();
  std::map<std::string, Planned> plans_;  // by path
};

}  // namespace arctrace::recording
