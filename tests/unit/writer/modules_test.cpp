// The modules that a process defines, before and after it loads and unloads some.
#include <arctrace/arctrace.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "src/api/shim_interface.h"
#include "src/writer/process_records.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

struct Module {
  uint32_t flags;
  uint64_t start, end, bias, dev, inode;
  std::string build_id, path;

  explicit Module(const DecodedRecord& record)
      : flags(record.u32(4)),
        start(record.u64(8)),
        end(record.u64(16)),
        bias(record.u64(24)),
        dev(record.u64(32)),
        inode(record.u64(40)),
        build_id(record.text(56, record.u32(48))),
        path(record.text(56 + (record.u32(48) + 3) / 4 * 4, record.u32(52))) {}

  bool holds(const void* address) const {
    const auto at = reinterpret_cast<uint64_t>(address);
    return start <= at && at < end;
  }
};

int in_this_program;

TEST_CASE("modules: the program, its libraries and the vdso, where they are") {
  TestSession test(small_buffer(16384, 16));
  CHECK_CHILD([&] { REQUIRE(arctrace_attach(test.path().c_str()) == 0); });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  int programs = 0;
  int libcs = 0;
  int vdsos = 0;
  const auto* vdso = reinterpret_cast<const void*>(getauxval(AT_SYSINFO_EHDR));
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_MODULE)) {
    const Module module(record);
    CAPTURE(module.path);
    CHECK(module.start < module.end);
    if (module.path.starts_with('/')) {
      struct stat status {};
      REQUIRE(stat(module.path.c_str(), &status) == 0);
      CHECK(module.dev == status.st_dev);
      CHECK(module.inode == status.st_ino);
    }
    if (module.flags == ARCTRACE_MODULE_MAIN) {
      ++programs;
      CHECK(module.holds(&in_this_program));
      CHECK(module.path == std::filesystem::read_symlink("/proc/self/exe").string());
    }
    if (module.holds(reinterpret_cast<const void*>(&getauxval))) {
      ++libcs;
      CHECK(module.path.find("libc.so") != std::string::npos);
      CHECK(module.build_id.size() == 20);
    }
    if (vdso != nullptr && module.holds(vdso)) {
      ++vdsos;
      CHECK(module.flags == ARCTRACE_MODULE_VDSO);
    }
  }
  CHECK(programs == 1);
  CHECK(libcs == 1);
  CHECK(vdsos == (vdso != nullptr ? 1 : 0));
}

TEST_CASE("modules: what is loaded and unloaded while it runs") {
  constexpr const char* kLibrary = "libanl.so.1";  // of glibc; nothing here loads it
  TestSession test(small_buffer(16384, 64));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    REQUIRE(dlopen(kLibrary, RTLD_NOLOAD | RTLD_NOW) == nullptr);
    arctrace_shim_modules_changed();  // nothing has changed
    void* library = dlopen(kLibrary, RTLD_NOW);
    REQUIRE(library != nullptr);
    arctrace_shim_modules_changed();
    arctrace_shim_modules_changed();
    CHECK_CHILD([] { arctrace_instant(1); });  // the library is loaded in this child
    REQUIRE(dlclose(library) == 0);
    arctrace_shim_modules_changed();
    CHECK_CHILD([] { arctrace_instant(1); });  // but not in this child
    library = dlopen(kLibrary, RTLD_NOW);
    arctrace_shim_modules_changed();
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  std::map<uint32_t, int> loads;
  std::map<uint32_t, int> all;
  uint64_t start = 0;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_MODULE)) {
    const Module module(record);
    ++all[record.u32(0)];
    if (module.path.find(kLibrary) == std::string::npos) continue;
    ++loads[record.u32(0)];
    start = module.start;
  }
  CHECK(loads[1] == 2);
  CHECK(loads[2] == 1);
  CHECK(loads[3] == 0);
  CHECK(all[1] == all[3] + 2);
  const std::vector<DecodedRecord> gone = trace.of_type(ARCTRACE_TYPE_MODULE_GONE);
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].u32(0) == 1);
  CHECK(gone[0].u64(8) != 0);
  CHECK(start != 0);
}

// The kinds of HOOKED records of each process.
std::map<uint32_t, std::vector<uint32_t>> hooked_kinds(const DecodedTrace& trace) {
  std::map<uint32_t, std::vector<uint32_t>> kinds;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_HOOKED)) {
    kinds[record.u32(0)].push_back(record.u32(4));
  }
  return kinds;
}

TEST_CASE("modules: how their functions are hooked, as long as they are loaded") {
  constexpr const char* kLibrary = "libanl.so.1";
  TestSession test(small_buffer(16384, 64));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_instant(1);
    const auto in_library = [&] {
      void* library = dlopen(kLibrary, RTLD_NOW);
      REQUIRE(library != nullptr);
      link_map* map = nullptr;
      REQUIRE(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
      return std::pair(library, reinterpret_cast<uintptr_t>(map->l_ld));
    };
    const auto [library, function] = in_library();
    arctrace_shim_hooked(ARCTRACE_HOOK_XRAY, function);  // it is not defined yet
    arctrace_shim_modules_changed();
    arctrace_shim_hooked(ARCTRACE_HOOK_RETURN, function);
    arctrace_shim_hooked(ARCTRACE_HOOK_XRAY, function);  // the first one counts
    CHECK_CHILD([] { arctrace_instant(1); });
    REQUIRE(dlclose(library) == 0);
    arctrace_shim_modules_changed();
    CHECK_CHILD([] { arctrace_instant(1); });
    const auto again = in_library();
    arctrace_shim_modules_changed();
    arctrace_shim_hooked(ARCTRACE_HOOK_XRAY, again.second);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  const auto kinds = hooked_kinds(trace);
  REQUIRE(kinds.contains(1));
  CHECK(kinds.at(1) == std::vector<uint32_t>{ARCTRACE_HOOK_RETURN, ARCTRACE_HOOK_XRAY});
  REQUIRE(kinds.contains(2));
  CHECK(kinds.at(2) == std::vector<uint32_t>{ARCTRACE_HOOK_RETURN});
  CHECK_FALSE(kinds.contains(3));
}

}  // namespace
}  // namespace arctrace::testing
