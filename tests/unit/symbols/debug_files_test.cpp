// Directories that are searched for the debug file of a module.
#include "reader/symbols/debug_files.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "tests/support/skip.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

using testing::TemporaryDirectory;

DebugFiles below(const std::string& root) { return DebugFiles(rooted_at(root)); }

// The debug file that is found for `path`; "" if there is none.
std::string found_for(const DebugFiles& debug_files, const std::string& path) {
  const auto elf = ElfFile::open_untrusted(path);
  REQUIRE(elf.ok());
  const auto debug = debug_files.find_untrusted(path, *elf);
  return debug ? debug->path : "";
}

TEST_CASE("hexadecimal digits") {
  CHECK(to_hex({std::byte{0x0f}, std::byte{0xa0}, std::byte{0}}) == "0fa000");
  CHECK(to_hex({}) == "");
}

TEST_CASE("by build-id, and only with that build-id") {
  TemporaryDirectory root;
  const BuildId build_id = build_id_of(fixture("full.so"));
  const std::string path = build_id_path(root.path(), build_id);
  CHECK(found_for(below(root.path()), fixture("stripped.so")) == "");
  copy_file(fixture("full.debug"), path);
  CHECK(found_for(below(root.path()), fixture("stripped.so")) == path);
  copy_file(fixture("other.so"), path);
  CHECK(found_for(below(root.path()), fixture("stripped.so")) == "");
  CHECK_FALSE(below(root.path()).find_by_build_id_untrusted({}));
  CHECK_FALSE(below(root.path()).find_by_build_id_untrusted({std::byte{1}}));
}

TEST_CASE("by .gnu_debuglink in its three directories") {
  for (const bool has_build_id : {true, false}) {
    CAPTURE(has_build_id);
    const std::string module = has_build_id ? "linked.so" : "no_id_linked.so";
    const std::string debug = has_build_id ? "full.debug" : "no_id.debug";
    TemporaryDirectory root;
    TemporaryDirectory home;
    const DebugFiles debug_files = below(root.path());
    const std::string path = home.path() + "/" + module;
    copy_file(fixture(module), path);
    CHECK(found_for(debug_files, path) == "");
    for (const std::string& candidate :
         {root.path() + home.path() + "/" + debug, home.path() + "/.debug/" + debug,
          home.path() + "/" + debug}) {
      copy_file(fixture(debug), candidate);
      CHECK(found_for(debug_files, path) == candidate);
      // Damaged or foreign files are skipped.
      write_file(candidate, read_file(candidate) + "x");
      CHECK(found_for(debug_files, path) == (has_build_id ? candidate : ""));
      copy_file(fixture("other.so"), candidate);
      CHECK(found_for(debug_files, path) == "");
    }
  }
}

TEST_CASE("by .gnu_debuglink beside the file that a link leads to") {
  TemporaryDirectory directory;
  copy_file(fixture("linked.so"), directory.path() + "/real/linked.so");
  copy_file(fixture("full.debug"), directory.path() + "/real/full.debug");
  const std::string link = directory.path() + "/link.so";
  std::filesystem::create_symlink("real/linked.so", link);
  const std::string found = found_for(below("/nonexistent"), link);
  REQUIRE(found != "");
  CHECK(std::filesystem::equivalent(found, directory.path() + "/real/full.debug"));
}

// Sets a variable of the environment for a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name_, value.c_str(), 1);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST_CASE("debuginfod is asked only when that is allowed") {
  if (dlopen("libdebuginfod.so.1", RTLD_NOW) == nullptr) {
    testing::skip_case("libdebuginfod.so.1 is not installed");
    return;
  }
  TemporaryDirectory server;
  TemporaryDirectory cache;
  const BuildId build_id = build_id_of(fixture("full.so"));
  copy_file(fixture("full.debug"),
            server.path() + "/buildid/" + to_hex(build_id) + "/debuginfo");
  const ScopedVariable cache_path("DEBUGINFOD_CACHE_PATH", cache.path());
  SymbolOptions allowed;
  allowed.allow_download = true;
  CHECK_FALSE(DebugFiles(allowed).download_untrusted(build_id));
  const ScopedVariable urls("DEBUGINFOD_URLS", "file://" + server.path() + "/");
  CHECK_FALSE(DebugFiles(SymbolOptions()).download_untrusted(build_id));
  CHECK(std::filesystem::is_empty(cache.path()));
  const auto file = DebugFiles(allowed).download_untrusted(build_id);
  REQUIRE(file);
  CHECK(file->elf.build_id() == build_id);
  CHECK(file->path.starts_with(cache.path()));
  CHECK_FALSE(DebugFiles(allowed).download_untrusted(build_id_of(fixture("other.so"))));
}

}  // namespace
}  // namespace arctrace::reader
