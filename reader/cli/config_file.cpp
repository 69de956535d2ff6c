#include "reader/cli/config_file.hpp"

#include <string>

namespace arctrace::cli {

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  std::vector<CLI::ConfigItem> found = CLI::ConfigTOML::from_config(input);
  std::erase_if(found,
                [this](const CLI::ConfigItem& item) { return is_outranked(item); });
  return found;
}

bool ConfigFile::is_outranked(const CLI::ConfigItem& item) const {
  const CLI::App* app = &root_;
  for (const std::string& parent : item.parents) {
    const auto children = app->get_subcommands(
        [&](const CLI::App* child) { return child->get_name() == parent; });
    if (children.empty()) return false;
    app = children.front();
  }
  const CLI::Option* option = app->get_option_no_throw("--" + item.name);
  if (option == nullptr) return false;
  for (const CLI::Option* other : option->get_excludes()) {
    if (other->count() > 0) return true;
  }
  const CLI::Option* session = app->get_option_no_throw("--session");
  return session != nullptr && session->count() > 0 &&
         option->get_group() == kOwnBufferGroup;
}

}  // namespace arctrace::cli
