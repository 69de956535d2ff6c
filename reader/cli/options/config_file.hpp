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

// `path` if a file of options is there that may be read without being asked for, else
// empty: it must be a regular file that can be trusted. `warning`: why one that is there
// is not.
std::string default_config_at(const std::string& path, std::string& warning);

// Ignores options of the file that contradict the command line: CLI11 ignores only the
// same option, and rejects one that an option of the command line excludes. Also knows
// the line of each option, for messages.
class ConfigFile : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& root) : root_(root) {}
  // Called by CLI11 when it has parsed the command line. Reads the file anew, by a
  // descriptor of which it has seen the owner. Throws CLI::ConfigError if the file is
  // neither this user's nor root's, or others may write to it, for an unknown command or
  // option, and for an output file that another user has named.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // "FILE:LINE: " of the option `name` ("--slots") of `command`, if its value comes from
  // the file; else empty.
  std::string line_of(const std::string& command, const std::string& name) const;

 private:
  bool is_overridden(const CLI::ConfigItem& item) const;
  void check_known(const CLI::ConfigItem& item) const;
  std::string read_trusted(const std::string& path) const;
  std::string line_prefix(const std::string& key) const;

  const CLI::App& root_;
  mutable bool is_ours_ = true;                  // the file belongs to this user
  mutable std::map<std::string, size_t> lines_;  // by "command.option"
};

}  // namespace arctrace::cli
