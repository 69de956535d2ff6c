// Functions and lines of addresses, from the debug files that are found.
#include "reader/symbols/symbolizer.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

using testing::TemporaryDirectory;

TEST_CASE("display names, starts and lines") {
  Symbolizer symbolizer(rooted_at("/nonexistent"));
  const std::string path = fixture("full.so");
  const BuildId build_id = build_id_of(path);
  const auto nm = nm_addresses(path, "");
  const uint64_t cpp = nm.at("_Z11fixture_cppi");
  const auto plain = symbolizer.resolve(path, build_id, cpp + 1);
  CHECK(plain.function == "fixture_cpp(int)");
  CHECK(plain.start == cpp);
  CHECK_FALSE(plain.source);
  const auto with_line = symbolizer.resolve(path, build_id, cpp, WithSource::kYes);
  REQUIRE(with_line.source);
  CHECK(with_line.source->line == source_line("fixture.cpp", "int fixture_cpp("));
  const auto method =
      symbolizer.resolve(path, build_id, nm.at("_ZNK7fixture4PairIiLm3EE3sumIdEEiT_"));
  CHECK(method.function == "int fixture::Pair<int, 3ul>::sum<double>(double) const");
  const auto nothing = symbolizer.resolve(path, build_id, 1);
  CHECK(nothing.function == "");
  CHECK(nothing.start == 0);
  // A name that was handed out stays valid.
  for (const auto& [name, address] : nm) symbolizer.resolve(path, build_id, address);
  CHECK(plain.function == "fixture_cpp(int)");
  CHECK(plain.function.data() == with_line.function.data());
  CHECK(symbolizer.findings().empty());
}

TEST_CASE("without a recorded build-id the file is taken as it is") {
  Symbolizer symbolizer(rooted_at("/nonexistent"));
  const uint64_t add = nm_addresses(fixture("no_id.so"), "").at("fixture_add");
  CHECK(symbolizer.resolve(fixture("no_id.so"), {}, add).function == "fixture_add");
  CHECK(symbolizer.findings().empty());
}

TEST_CASE("a file with another build-id is not used, and there is one finding") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/module.so";
  copy_file(fixture("other.so"), path);
  const BuildId recorded = build_id_of(fixture("full.so"));
  const auto nm = nm_addresses(fixture("full.so"), "");
  Symbolizer symbolizer(rooted_at(directory.path()));
  for (const auto& [name, address] : nm) {
    const auto resolved = symbolizer.resolve(path, recorded, address, WithSource::kYes);
    CHECK(resolved.function == "");
    CHECK_FALSE(resolved.source);
  }
  REQUIRE(symbolizer.findings().size() == 1);
  CHECK(symbolizer.findings()[0] == path + ": build-id differs from the recorded one");
}

TEST_CASE("then the debug file of the recorded build-id serves") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/module.so";
  const BuildId recorded = build_id_of(fixture("full.so"));
  const std::string debug = build_id_path(directory.path(), recorded);
  copy_file(fixture("full.debug"), debug);
  const auto nm = nm_addresses(fixture("full.so"), "");
  for (const bool is_missing : {false, true}) {
    CAPTURE(is_missing);
    if (is_missing) {
      std::filesystem::remove(path);
    } else {
      copy_file(fixture("other.so"), path);
    }
    Symbolizer symbolizer(rooted_at(directory.path()));
    const auto add =
        symbolizer.resolve(path, recorded, nm.at("fixture_add"), WithSource::kYes);
    CHECK(add.function == "fixture_add");
    REQUIRE(add.source);
    CHECK(add.source->line == source_line("fixture.c", "int fixture_add("));
    CHECK(symbolizer.resolve(path, recorded, nm.at("fixture_local")).function ==
          "fixture_local");
    REQUIRE(symbolizer.findings().size() == 1);
    CHECK(symbolizer.findings()[0].starts_with(path + ": "));
    CHECK(symbolizer.findings()[0].ends_with("; names are from " + debug));
  }
}

TEST_CASE("missing files and names that are no paths give one finding each") {
  Symbolizer symbolizer(rooted_at("/nonexistent"));
  const BuildId recorded = build_id_of(fixture("full.so"));
  for (int round = 0; round < 3; ++round) {
    for (const char* path : {"/nonexistent/a.so", "[vdso]", "", "relative.so"}) {
      CHECK(symbolizer.resolve(path, recorded, 0x1000).function == "");
    }
  }
  REQUIRE(symbolizer.findings().size() == 4);
  CHECK(symbolizer.findings()[0].starts_with("/nonexistent/a.so: "));
  CHECK(symbolizer.findings()[1].starts_with("[vdso]: "));
  // Moved instructions of patched functions have no file.
  CHECK(symbolizer.resolve("[arctrace]", {}, 0x1000).function == "");
  CHECK(symbolizer.findings().size() == 4);
}

TEST_CASE("a relative path is not looked up in the reader's directory") {
  TemporaryDirectory directory;
  copy_file(fixture("full.so"), directory.path() + "/module.so");
  const std::string path =
      std::filesystem::relative(directory.path() + "/module.so").string();
  REQUIRE(std::filesystem::exists(path));
  Symbolizer symbolizer(rooted_at("/nonexistent"));
  const uint64_t add = nm_addresses(fixture("full.so"), "").at("fixture_add");
  CHECK(symbolizer.resolve(path, {}, add).function == "");
  CHECK(symbolizer.findings().size() == 1);
}

TEST_CASE("one path with two recorded build-ids is two modules") {
  Symbolizer symbolizer(rooted_at("/nonexistent"));
  const std::string path = fixture("full.so");
  const uint64_t add = nm_addresses(path, "").at("fixture_add");
  CHECK(symbolizer.resolve(path, build_id_of(fixture("other.so")), add).function == "");
  CHECK(symbolizer.resolve(path, build_id_of(path), add).function == "fixture_add");
  CHECK(symbolizer.findings().size() == 1);
}

}  // namespace
}  // namespace arctrace::reader
