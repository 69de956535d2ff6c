// Source lines of addresses in all forms of DWARF data.
#include "reader/symbols/line_table.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "reader/symbols/symbol_file.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

using testing::TemporaryDirectory;

// "file name:line" of a fixture's address; "" for none.
std::string line_at(SymbolFile& file, uint64_t address) {
  const auto line = file.find_line(address);
  if (!line) return "";
  return std::filesystem::path(line->file).filename().string() + ":" +
         std::to_string(line->line);
}

std::string c_line(const std::string& text) {
  return "fixture.c:" + std::to_string(source_line("fixture.c", text));
}

std::string cpp_line(const std::string& text) {
  return "fixture.cpp:" + std::to_string(source_line("fixture.cpp", text));
}

// Checks lines of `file`. `names`: the fixture with its symbol table.
void check_lines(SymbolFile& file, const std::string& names) {
  const auto nm = nm_addresses(fixture(names), "");
  CHECK(line_at(file, nm.at("fixture_add")) == c_line("int fixture_add("));
  CHECK(line_at(file, nm.at("fixture_local")) == c_line("int fixture_local("));
  CHECK(line_at(file, nm.at("fixture_calls_local")) == c_line("int fixture_calls_local"));
  CHECK(line_at(file, nm.at("_Z11fixture_cppi")) == cpp_line("int fixture_cpp("));
  CHECK(line_at(file, nm.at("_ZNK7fixture5Shape4areaEv")) ==
        cpp_line("int Shape::area() const {"));
  // There are no lines where the compiler put no code.
  CHECK(line_at(file, nm.at("fixture_unsized")) == "");
  CHECK(line_at(file, nm.at("_init")) == "");
  CHECK(line_at(file, 0) == "");
  CHECK(line_at(file, UINT64_MAX) == "");
}

TEST_CASE("the entry of a function has the line that opens it") {
  for (const char* name : {"full.so", "dwarf4.so", "split_dwarf.so", "compressed.so",
                           "no_aranges.so", "program"}) {
    CAPTURE(name);
    auto file = open_file(fixture(name));
    REQUIRE(file.ok());
    check_lines(*file, name);
    CHECK(file->find_line(nm_addresses(fixture(name), "").at("fixture_add"))
              ->file.starts_with("/"));
  }
}

TEST_CASE("lines inside of a function rise from its first to its last") {
  auto file = open_file(fixture("full.so"));
  REQUIRE(file.ok());
  const uint32_t first = source_line("fixture.c", "int fixture_add(");
  const auto add =
      file->functions().find(nm_addresses(fixture("full.so"), "").at("fixture_add"));
  REQUIRE(add);
  uint32_t last = first;
  for (uint64_t offset = 0; offset < add->size; ++offset) {
    const auto line = file->find_line(add->start + offset);
    REQUIRE(line);
    CHECK(line->line >= last);
    last = line->line;
  }
  CHECK(last == first + 3);
}

TEST_CASE("from the separate debug file") {
  TemporaryDirectory root;
  auto without = open_file(fixture("stripped.so"), root.path());
  REQUIRE(without.ok());
  CHECK(line_at(*without, nm_addresses(fixture("full.so"), "").at("fixture_add")) == "");
  copy_file(fixture("full.debug"),
            build_id_path(root.path(), build_id_of(fixture("full.so"))));
  auto file = open_file(fixture("stripped.so"), root.path());
  REQUIRE(file.ok());
  check_lines(*file, "full.so");
}

TEST_CASE("a file that was replaced since it was opened gives no lines") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/module.so";
  copy_file(fixture("full.so"), path);
  auto file = open_file(path);
  REQUIRE(file.ok());
  copy_file(fixture("other.so"), path);
  CHECK(line_at(*file, nm_addresses(fixture("full.so"), "").at("fixture_add")) == "");
}

// A copy of full.so at `path` with a .gnu_debugaltlink.
void make_linked(const std::string& path, const std::string& name,
                 const BuildId& build_id) {
  std::string link = name + '\0';
  for (const std::byte byte : build_id) link += std::to_integer<char>(byte);
  write_file(path + ".link", link);
  const std::string command = std::string(SYMBOLS_OBJCOPY) +
                              " --add-section .gnu_debugaltlink=" + path + ".link " +
                              fixture("full.so") + " " + path;
  REQUIRE(system(command.c_str()) == 0);
}

TEST_CASE("a file that shares DWARF data needs the file that has them") {
  const BuildId build_id = build_id_of(fixture("common.debug"));
  REQUIRE(build_id.size() == 20);
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/lib/module.so";
  const std::string beside = directory.path() + "/dwz/common.debug";
  const std::string by_build_id = build_id_path(directory.path(), build_id);
  std::filesystem::create_directory(directory.path() + "/lib");
  make_linked(path, "../dwz/common.debug", build_id);
  const uint64_t add = nm_addresses(path, "").at("fixture_add");
  const auto line_now = [&] {
    auto file = open_file(path, directory.path());
    REQUIRE(file.ok());
    return line_at(*file, add);
  };
  CHECK(line_now() == "");
  copy_file(fixture("common.debug"), beside);
  CHECK(line_now() == c_line("int fixture_add("));
  copy_file(fixture("other.so"), beside);
  CHECK(line_now() == "");
  copy_file(fixture("common.debug"), by_build_id);
  CHECK(line_now() == c_line("int fixture_add("));
}

TEST_CASE("what dwz moved to a common file is found there") {
  if (SYMBOLS_HAVE_DWZ == 0) {
    testing::skip_case("dwz was not installed when this was built");
    return;
  }
  // The file is not beside the module, where libdw could find it by itself.
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/module.so";
  copy_file(fixture("dwz.so"), path);
  const BuildId common = build_id_of(fixture("dwz.common"));
  copy_file(fixture("dwz.common"), build_id_path(directory.path(), common));
  auto file = open_file(path, directory.path());
  REQUIRE(file.ok());
  const auto line = file->find_line(nm_addresses(path, "").at("fixture_add"));
  REQUIRE(line);
  CHECK(line->file.starts_with("/"));
  CHECK(line->file.ends_with("/fixture.c"));
}

// Opening a FIFO would never return.
TEST_CASE("a .gnu_debugaltlink is not followed to just any file") {
  TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const std::string path = directory.path() + "/module.so";
  make_linked(path, fifo, BuildId(20, std::byte{1}));
  auto file = open_file(path);
  REQUIRE(file.ok());
  CHECK(line_at(*file, nm_addresses(path, "").at("fixture_add")) == "");
}

// libdw would read beyond the section, which AddressSanitizer sees.
TEST_CASE("strings without an end give no lines") {
  for (const char* name : {".debug_str", ".debug_line_str"}) {
    CAPTURE(name);
    TemporaryDirectory directory;
    const std::string path = directory.path() + "/module.so";
    write_file(directory.path() + "/strings", std::string(1000, 'x'));
    const std::string command = std::string(SYMBOLS_OBJCOPY) + " --update-section " +
                                name + "=" + directory.path() + "/strings " +
                                fixture("full.so") + " " + path;
    REQUIRE(system(command.c_str()) == 0);
    auto file = open_file(path);
    REQUIRE(file.ok());
    CHECK(line_at(*file, nm_addresses(path, "").at("fixture_add")) == "");
  }
}

}  // namespace
}  // namespace arctrace::reader
