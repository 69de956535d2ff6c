// The file of options that are always wanted.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <vector>

namespace arctrace::cli {

// Of record's options those that make a buffer and a file: without meaning in a session
// that is there already.
inline constexpr const char* kOwnBufferGroup = "Buffer and file";

// Leaves out what the command line outranks: CLI11 does so with the same option only, and
// refuses one that the command line's excludes.
class ConfigFile : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& root) : root_(root) {}
  // To be called when the command line has been parsed.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  bool is_outranked(const CLI::ConfigItem& item) const;

  const CLI::App& root_;
};

}  // namespace arctrace::cli
