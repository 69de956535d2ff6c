// The place where the options of `arctrace record` end and the command's own begin.
#include "reader/cli/options/command_line.hpp"

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <doctest/doctest.h>

namespace arctrace::cli {
namespace {

// `arguments` after separate_command(), with options of each kind.
std::string separated(const std::string& arguments) {
  CLI::App root;
  std::string config, output;
  root.add_option("--config", config);
  CLI::App* record = root.add_subcommand("record");
  root.add_subcommand("report");
  record->add_option("-o,--output", output);
  record->add_flag("--wait");
  root.add_subcommand("live")
      ->add_option_function<std::string>("--kernel", [](const std::string&) {})
      ->expected(0, 1);
  record->add_option_function<std::string>("--kernel", [](const std::string&) {})
      ->expected(0, 1);
  std::vector<std::string> parts = absl::StrSplit(arguments, ' ', absl::SkipEmpty());
  separate_command(root, parts);
  return absl::StrJoin(parts, " ");
}

TEST_CASE("the command of which help is asked for is not run") {
  CHECK(separated("help record") == "help -- record");
  CHECK(separated("help --help") == "help --help");
  CHECK(separated("help") == "help");
}

TEST_CASE("options after the command belong to it") {
  CHECK(separated("record ls -l") == "record -- ls -l");
  CHECK(separated("record --wait ls -l") == "record --wait -- ls -l");
  CHECK(separated("record -o out ls -o other") == "record -o out -- ls -o other");
  CHECK(separated("record --output=out ls") == "record --output=out -- ls");
  CHECK(separated("record --config file ls -x") == "record --config file -- ls -x");
  CHECK(separated("record -- ls -l") == "record -- ls -l");
  CHECK(separated("record ls -- -l") == "record -- ls -- -l");
}

TEST_CASE("an option whose value is optional takes none that follows") {
  CHECK(separated("record --kernel ls -l") == "record --kernel -- -- ls -l");
  CHECK(separated("record --kernel -- ls -l") == "record --kernel -- -- ls -l");
  CHECK(separated("record --kernel --wait ls") == "record --kernel --wait -- ls");
}

TEST_CASE("what divides the files of diff") {
  CHECK(separated("diff a b") == "diff a b");
  CHECK(separated("diff a1 a2 -- b1 b2 --format=json") ==
        "diff a1 a2 --after b1 b2 --format=json");
}

TEST_CASE("what says that a command follows, for live") {
  CHECK(separated("live name") == "live name");
  CHECK(separated("live --plain -- ls -- -l") == "live --plain --  ls -- -l");
  CHECK(separated("live --kernel -- ls -l") == "live --kernel -- --  ls -l");
}

TEST_CASE("a command that is missing, and other subcommands") {
  CHECK(separated("") == "");
  CHECK(separated("record") == "record");
  CHECK(separated("record --wait") == "record --wait");
  CHECK(separated("record -o") == "record -o");
  CHECK(separated("report -x y") == "report -x y");
  CHECK(separated("record -") == "record -- -");
}

}  // namespace
}  // namespace arctrace::cli
