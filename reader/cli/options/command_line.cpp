#include "reader/cli/options/command_line.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <vector>

#include "reader/cli/options/help_layout.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::cli {
namespace {

// Finds the option of this name, of the subcommand or of the root; null: there is none.
const CLI::Option* find_option(const CLI::App& root, const CLI::App& app,
                               const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option != nullptr ? option : root.get_option_no_throw(name);
}

bool needs_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_min() > 0;
}

// CLI11 takes a "--" after such an option for the end of its value, and drops it: then
// two are needed.
bool may_have_value(const CLI::Option* option) {
  return option != nullptr && !needs_value(option) &&
         option->get_items_expected_max() > 0;
}

// CLI11 drops a "--". For live it says that a command follows: an empty argument says
// the same.
void separate_live_command(const CLI::App& root, std::vector<std::string>& arguments) {
  const auto divider = std::find(arguments.begin() + 1, arguments.end(), "--");
  if (divider == arguments.end()) return;
  const CLI::App& app = *root.get_subcommand("live");
  const bool is_dropped = may_have_value(find_option(root, app, *(divider - 1)));
  const auto command = arguments.insert(divider + 1, std::string());
  if (is_dropped) arguments.insert(command, "--");
}

}  // namespace

void separate_command(const CLI::App& root, std::vector<std::string>& arguments) {
  const auto is = [&](size_t i, const char* text) { return arguments[i] == text; };
  if (arguments.empty()) return;
  if (is(0, "diff")) {
    // CLI11 drops a "--", which here divides the files.
    const auto divider = std::find(arguments.begin(), arguments.end(), "--");
    if (divider != arguments.end()) *divider = "--after";
    return;
  }
  if (is(0, "help") && arguments.size() > 1 && arguments[1][0] != '-') {
    // CLI11 would take the name for that of a second command.
    arguments.insert(arguments.begin() + 1, "--");
    return;
  }
  if (is(0, "live")) return separate_live_command(root, arguments);
  if (!is(0, "record")) return;
  const CLI::App& app = *root.get_subcommand("record");
  size_t i = 1;
  bool is_dropped = false;
  while (i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-' &&
         !is(i, "--")) {
    const CLI::Option* option = find_option(root, app, arguments[i]);
    is_dropped = may_have_value(option);
    i += needs_value(option) ? size_t{2} : size_t{1};
  }
  if (i >= arguments.size()) return;
  const size_t wanted = is_dropped ? 2 : 1;
  const size_t present = is(i, "--") ? 1 : 0;
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), wanted - present,
                   "--");
}

namespace {

constexpr size_t kConfigBytesMax = size_t{1} << 20;

// Returns why the options in a file are not used; empty: they are.
std::string distrust_of(const struct stat& status) {
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return "it belongs to another user";
  }
  // A group with the user's number is the user's own, and many systems let it write.
  const mode_t foreign = status.st_gid == status.st_uid ? S_IWOTH : S_IWOTH | S_IWGRP;
  if ((status.st_mode & foreign) != 0) return "others may write to it";
  return {};
}

// The first line of each key, "section.key", and of each section, "section".
std::map<std::string, size_t> find_lines(const std::string& text) {
  std::map<std::string, size_t> lines;
  std::string section;
  size_t number = 0;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) {
    ++number;
    const std::string stripped = CLI::detail::trim_copy(line);
    if (stripped.empty() || stripped.front() == '#') continue;
    if (stripped.front() == '[' && stripped.back() == ']') {
      section = stripped.substr(1, stripped.size() - 2);
      lines.emplace(section, number);
      continue;
    }
    const std::string key =
        CLI::detail::trim_copy(stripped.substr(0, stripped.find('=')));
    lines.emplace(section.empty() ? key : absl::StrCat(section, ".", key), number);
  }
  return lines;
}

std::string key_of(const CLI::ConfigItem& item) {
  return absl::StrCat(absl::StrJoin(item.parents, "."), item.parents.empty() ? "" : ".",
                      item.name);
}

// Whether `item` is CLI11's own mark of the begin or end of a section.
bool is_mark(const CLI::ConfigItem& item) {
  return item.name == "++" || item.name == "--";
}

const CLI::App* app_of(const CLI::App& root, const CLI::ConfigItem& item) {
  const CLI::App* app = &root;
  for (const std::string& parent : item.parents) {
    const auto children = app->get_subcommands(
        [&](const CLI::App* child) { return child->get_name() == parent; });
    if (children.empty()) return nullptr;
    app = children.front();
  }
  return app;
}

}  // namespace

std::string default_config_at(const std::string& path, std::string& warning) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  const std::string distrust =
      S_ISREG(status.st_mode) ? distrust_of(status) : "it is not a regular file";
  if (distrust.empty()) return path;
  warning = absl::StrCat("not reading ", path, ": ", distrust);
  return {};
}

std::string ConfigFile::read_trusted(const std::string& path) const {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) throw CLI::FileError::Missing(path);
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat status {};
  if (fstat(fd, &status) != 0) throw CLI::FileError::Missing(path);
  if (const std::string distrust = distrust_of(status); !distrust.empty()) {
    throw CLI::ConfigError(absl::StrCat(path, ": ", distrust));
  }
  is_ours_ = status.st_uid == geteuid();
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while ((got = read(fd, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<size_t>(got));
    if (text.size() > kConfigBytesMax) {
      throw CLI::ConfigError(
          absl::StrCat(path, ": larger than a file of options may be"));
    }
  }
  return text;
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream&) const {
  const std::string text = read_trusted(root_.get_config_ptr()->as<std::string>());
  lines_ = find_lines(text);
  std::istringstream again(text);
  std::vector<CLI::ConfigItem> found = CLI::ConfigTOML::from_config(again);
  for (const CLI::ConfigItem& item : found) check_known(item);
  std::erase_if(found,
                [this](const CLI::ConfigItem& item) { return is_overridden(item); });
  return found;
}

std::string ConfigFile::line_of(const std::string& command,
                                const std::string& name) const {
  if (!name.starts_with("--")) return {};
  return line_prefix(absl::StrCat(command, ".", name.substr(2)));
}

std::string ConfigFile::line_prefix(const std::string& key) const {
  const auto line = lines_.find(key);
  if (line == lines_.end()) return {};
  return absl::StrCat(root_.get_config_ptr()->as<std::string>(), ":", line->second, ": ");
}

void ConfigFile::check_known(const CLI::ConfigItem& item) const {
  const CLI::App* app = app_of(root_, item);
  if (app == nullptr) {
    const std::string command = absl::StrJoin(item.parents, ".");
    std::vector<std::string> names;
    for (const CLI::App* known : root_.get_subcommands({})) {
      names.push_back(known->get_name());
    }
    throw CLI::ConfigError(absl::StrCat(line_prefix(command), "no command \"", command,
                                        "\"", near_names(command, names)));
  }
  if (is_mark(item)) return;
  if (item.name == "output" && !is_ours_) {
    throw CLI::ConfigError(absl::StrCat(line_prefix(key_of(item)),
                                        "output is only for the file's own user"));
  }
  if (app->get_option_no_throw("--" + item.name) != nullptr) return;
  std::vector<std::string> names;
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  throw CLI::ConfigError(absl::StrCat(line_prefix(key_of(item)), app->get_name(),
                                      " has no option \"", item.name, "\"",
                                      near_names(item.name, names)));
}

bool ConfigFile::is_overridden(const CLI::ConfigItem& item) const {
  const CLI::App* app = app_of(root_, item);
  const CLI::Option* option =
      app == nullptr ? nullptr : app->get_option_no_throw("--" + item.name);
  if (option == nullptr) return false;
  if (option->count() > 0) {
    lines_.erase(key_of(item));
    return true;
  }
  for (const CLI::Option* other : option->get_excludes()) {
    if (other->count() > 0) return true;
  }
  const CLI::Option* session = app->get_option_no_throw("--session");
  return session != nullptr && session->count() > 0 && is_own_group(option->get_group());
}

}  // namespace arctrace::cli
