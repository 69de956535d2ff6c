// Functions and modules that `arctrace ctl -F` finds in a session: a trace file lists
// this program and files that cannot be read among the modules of two processes.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/recording/patterns/program_functions.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/trace_builder.hpp"

// Functions in the symbol table of this program. The names in quotes are the linker's:
// copies that a compiler made, and a name that begins with a dot.
extern "C" {
void session_functions_plain();
void session_functions_cold() __asm__("session_functions_plain.cold");
void session_functions_part() __asm__("session_functions_copied.part.7");
void session_functions_dot() __asm__(".session_functions_dot");
__attribute__((used)) void session_functions_plain() {}
__attribute__((used)) void session_functions_cold() {}
__attribute__((used)) void session_functions_part() {}
__attribute__((used)) void session_functions_dot() {}
}
namespace session_functions {
__attribute__((used)) int twice(int number) { return 2 * number; }
}  // namespace session_functions

namespace arctrace::recording {
namespace {

using testing::module_body;

struct ListedModule {
  uint32_t process;
  std::string path;
};

// Writes a trace file of two processes with these modules.
void write_session(const std::string& path, const std::vector<ListedModule>& modules) {
  auto block = testing::BlockBuilder::shared(1, 0, ARCTRACE_CLASS_DEFINITIONS);
  for (const uint32_t process : {1u, 2u}) {
    testing::ProcessFacts facts;
    facts.process = process;
    facts.pid = 100 + process;
    block.add_full(ARCTRACE_TYPE_PROCESS, process, 10, testing::process_body(facts));
  }
  uint64_t start = 0x10000;
  for (const ListedModule& module : modules) {
    block.add_full(ARCTRACE_TYPE_MODULE, module.process, 20,
                   module_body(module.process, start, start + 0x1000, 0, module.path));
    start += 0x1000;
  }
  const std::vector<std::byte> bytes =
      testing::FileBuilder().block(block).finish(100).file();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::vector<const SessionFunction*> linked_as(const SessionFunctions& session,
                                              const std::string& name) {
  std::vector<const SessionFunction*> found;
  for (const SessionFunction& function : session.functions) {
    if (function.linked == name) found.push_back(&function);
  }
  return found;
}

TEST_CASE("session functions: those of each module's symbol table, by all their names") {
  const testing::TemporaryDirectory directory;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  write_session(directory.path("trace"), {{1, program}, {2, program}});
  const auto session = functions_of_session(directory.path("trace"));
  REQUIRE(session.ok());

  REQUIRE(linked_as(*session, "session_functions_plain").size() == 1);
  const auto part = linked_as(*session, "session_functions_copied.part.7");
  REQUIRE(part.size() == 1);
  CHECK(part[0]->base == "session_functions_copied");
  const auto twice = linked_as(*session, "_ZN17session_functions5twiceEi");
  REQUIRE(twice.size() == 1);
  CHECK(twice[0]->whole == "session_functions::twice(int)");
  CHECK(twice[0]->plain == "session_functions::twice");
  CHECK(linked_as(*session, "").empty());
  for (const SessionFunction& function : session->functions) {
    REQUIRE(function.base.find('.') == std::string::npos);
  }
}

TEST_CASE("session functions: modules are known by name, also those without symbols") {
  const testing::TemporaryDirectory directory;
  const std::string text = directory.path("libtext.so");
  std::ofstream(text) << "not an ELF file";
  write_session(directory.path("trace"), {{1, "/nonexistent/libgone.so.1"},
                                          {1, text},
                                          {1, "[vdso]"},
                                          {2, "/usr/lib/libgone.so.1"},
                                          {2, directory.path("")}});
  const auto session = functions_of_session(directory.path("trace"));
  REQUIRE(session.ok());
  CHECK(session->functions.empty());
  CHECK(session->modules ==
        absl::btree_set<std::string>{"", "[vdso]", "libgone.so.1", "libtext.so"});
}

TEST_CASE("session functions: none without a process, an error without a session") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  CHECK(functions_of_session(path).status().code() == absl::StatusCode::kNotFound);
  write_session(path, {});
  const auto session = functions_of_session(path);
  REQUIRE(session.ok());
  CHECK(session->functions.empty());
  CHECK(session->modules.empty());
  std::ofstream(path) << "not a trace";
  CHECK_FALSE(functions_of_session(path).ok());
}

}  // namespace
}  // namespace arctrace::recording
