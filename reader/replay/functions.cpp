#include "reader/replay/functions.hpp"

namespace arctrace::reader {

Functions::Functions() {
  intern({}, "", {});
  intern({}, "[unknown]", {});
}

FunctionId Functions::intern(std::string_view module, std::string_view name,
                             CodeLocation location) {
  if (const auto found = ids_.find({module, name}); found != ids_.end()) {
    return found->second;
  }
  const auto id = static_cast<FunctionId>(functions_.size());
  const Function& added = functions_.emplace_back(
      Function{intern_module(module), std::string(name), location,
               location.module == nullptr ? 0 : location.module->hook_kind});
  ids_.emplace(std::pair(added.module, std::string_view(added.name)), id);
  if (added.module.empty() && added.name == "[patching]") patching_ = id;
  return id;
}

std::string_view Functions::intern_module(std::string_view path) {
  if (path.empty()) return {};
  if (const auto found = module_by_path_.find(path); found != module_by_path_.end()) {
    return found->second;
  }
  const std::string_view kept = modules_.emplace_back(path);
  module_by_path_.emplace(kept, kept);
  return kept;
}

}  // namespace arctrace::reader
