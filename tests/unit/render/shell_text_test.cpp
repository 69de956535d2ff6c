// Words and commands for a shell.
#include "reader/render/shell_text.hpp"

#include <doctest/doctest.h>

namespace arctrace::reader {
namespace {

TEST_CASE("a word is quoted where a shell would take it for something else") {
  CHECK(shell_word("other.data") == "other.data");
  CHECK(shell_word("--view=tree") == "--view=tree");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("two words") == "'two words'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("$HOME") == "'$HOME'");
  CHECK(shell_word("~") == "'~'");
  CHECK(shell_word("a\\b") == "'a\\b'");
  CHECK(shell_word("caf\xc3\xa9") == "'caf\xc3\xa9'");
  CHECK(shell_word("a\x1b[1m'\\ 5%") == "\"$(printf 'a\\033[1m\\047\\134 5%%')\"");
  CHECK(shell_word("\xff") == "\"$(printf '\\377')\"");
}

TEST_CASE("a file is no option") {
  CHECK(shell_file("-o") == "./-o");
  CHECK(shell_file("a b") == "'a b'");
}

TEST_CASE("a command goes on in further lines") {
  const std::vector<std::string> words = {"arctrace", "graph", "'a name'", "other.data"};
  CHECK(shell_command(words, 7, 0) == "arctrace graph 'a name' other.data");
  CHECK(shell_command(words, 7, 41) == "arctrace graph 'a name' other.data");
  CHECK(shell_command(words, 7, 40) == "arctrace graph 'a name' \\\n         other.data");
  CHECK(shell_command(words, 2, 1) ==
        "arctrace \\\n    graph \\\n    'a name' \\\n    other.data");
  CHECK(shell_command({}, 7, 40).empty());
}

}  // namespace
}  // namespace arctrace::reader
