// Names of variables and of their members.
#include "reader/symbols/data_symbols.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

// The name of an address in the variable with this linker's name, from the file at `path`
// or its debug file.
class Names {
 public:
  Names(std::string path, const std::string& debug_root)
      : path_(std::move(path)),
        build_id_(build_id_of(fixture("typed.so"))),
        addresses_(nm_addresses(fixture("typed.so"), "", "OBJECT")),
        symbols_(rooted_at(debug_root)) {}

  std::string at(const std::string& variable, uint64_t offset) {
    const uint64_t address = addresses_.at(variable) + offset;
    const DataSymbols::Variable* found = symbols_.find(path_, build_id_, address);
    if (found == nullptr) return {};
    return symbols_.name_in(path_, build_id_, found->name, found->start, address);
  }

 private:
  const std::string path_;
  const BuildId build_id_;
  const std::map<std::string, uint64_t> addresses_;
  DataSymbols symbols_;
};

TEST_CASE("members of variables") {
  Names names(fixture("typed.so"), "/nonexistent");
  CHECK(names.at("_ZN5typed6tablesE", 0) == "typed::tables[0].first_of_none");
  CHECK(names.at("_ZN5typed6tablesE", 8) == "typed::tables[0].second_of_none");
  CHECK(names.at("_ZN5typed6tablesE", 32) == "typed::tables[1].first_of_none");
  CHECK(names.at("_ZN5typed6tablesE", 120) == "typed::tables[3]");
  CHECK(names.at("_ZN5typed6tablesE", 128) != "typed::tables[4].first_of_none");
  CHECK(names.at("_ZN5typed5tableE", 0) == "typed::table.number");
  CHECK(names.at("_ZN5typed5tableE", 4) == "typed::table.cell.as_number");
  CHECK(names.at("_ZN5typed5tableE", 56) == "typed::table.owned[1].second_of_none");
  CHECK(names.at("_ZN5typed5tableE", 112) == "typed::table.pointer");
  CHECK(names.at("_ZN5Table6sharedE", 0) == "Table::shared");
  CHECK(names.at("_ZZN5typed11of_functionEvE5local", 8) ==
        "typed::of_function()::local.second_of_none");
  // Of arrays with several dimensions the element is not told.
  CHECK(names.at("_ZN5typedL4gridE", 8) == "typed::grid+0x8");
}

TEST_CASE("names from a debug file") {
  const testing::TemporaryDirectory directory;
  const std::string stripped = directory.path("typed.so");
  REQUIRE(std::system(
              ("objcopy --strip-all " + fixture("typed.so") + " " + stripped).c_str()) ==
          0);
  CHECK(Names(stripped, "/nonexistent").at("_ZN5typed6tablesE", 8) ==
        "typed::tables+0x8");
  const BuildId build_id = build_id_of(fixture("typed.so"));
  copy_file(fixture("typed.so"), build_id_path(directory.path(), build_id));
  CHECK(Names(stripped, directory.path()).at("_ZN5typed6tablesE", 8) ==
        "typed::tables[0].second_of_none");
  CHECK(Names("/nonexistent/typed.so", directory.path()).at("_ZN5typed6tablesE", 40) ==
        "typed::tables[1].second_of_none");
  CHECK(Names(fixture("other.so"), directory.path()).at("_ZN5typed6tablesE", 0) ==
        "typed::tables[0].first_of_none");
}

}  // namespace
}  // namespace arctrace::reader
