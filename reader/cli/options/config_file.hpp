// The file of default options: --config, or ~/.config/arctrace/config.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace arctrace::cli {

// The group of those options of record that create a buffer and a file. They have no
// meaning with --session.
inline constexpr const char* kOwnBufferGroup = "Buffer and file";

// Ignores options of the file that contradict the command line: CLI11 ignores only the
// same option, and rejects one that an option of the command line excludes. Also knows
// the line of each option, for messages.
class ConfigFile : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& root) : root_(root) {}
  // Called by CLI11 when it has parsed the command line. Throws CLI::ConfigError for an
  // unknown command or option.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // "FILE:LINE: " of the option `name` ("--slots") of `command`, if its value comes from
  // the file; else empty.
  std::string line_of(const std::string& command, const std::string& name) const;

 private:
  bool is_overridden(const CLI::ConfigItem& item) const;
  void check_known(const CLI::ConfigItem& item) const;
  std::string line_prefix(const std::string& key) const;

  const CLI::App& root_;
  mutable std::map<std::string, size_t> lines_;  // by "command.option"
};

}  // namespace arctrace::cli
