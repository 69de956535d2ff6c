// The command line around its options: the arguments before they are parsed, the file of
// default options, and the text of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {

// Changes the arguments of arctrace before they are parsed. Puts a "--" before COMMAND in
// `record [OPTION]... COMMAND -x`, so that -x belongs to COMMAND, and in `help COMMAND`;
// and --after in place of the "--" in `diff A1 A2 -- B1 B2`. `arguments`: all of them,
// without the program's name; those of other subcommands stay as they are. `root`: has
// the subcommand record.
void separate_command(const CLI::App& root, std::vector<std::string>& arguments);

// Returns `path` if a file of options is there that may be read without being asked for,
// else an empty path: it must be a regular file that can be trusted. `warning`: why an
// existing file is not used.
std::string default_config_at(const std::string& path, std::string& warning);

// The file of default options: --config, or ~/.config/arctrace/config. Ignores options of
// the file that contradict the command line: CLI11 ignores only the same option, and
// rejects one that an option of the command line excludes. It also knows the line of each
// option, for messages.
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
