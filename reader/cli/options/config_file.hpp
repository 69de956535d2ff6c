// The file of options that are always wanted.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace arctrace::cli {

// Of record's options those that make a buffer and a file: without meaning in a session
// that is there already.
inline constexpr const char* kOwnBufferGroup = "Buffer and file";

// Leaves out what the command line outranks: CLI11 does so with the same option only, and
// refuses one that the command line's excludes. Knows in which line an option stands,
// which CLI11's errors don't tell.
class ConfigFile : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& root) : root_(root) {}
  // To be called when the command line has been parsed. Throws CLI::ConfigError for what
  // is no option of a command.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // "FILE:LINE: " of the option `name` ("--slots") of `command`, if its value is from
  // the file; else empty.
  std::string place_of(const std::string& command, const std::string& name) const;

 private:
  bool is_outranked(const CLI::ConfigItem& item) const;
  void check_known(const CLI::ConfigItem& item) const;
  std::string place(const std::string& key) const;

  const CLI::App& root_;
  mutable std::map<std::string, size_t> lines_;  // by "command.option"
};

}  // namespace arctrace::cli
