// The symbols of ELF files, compared with nm and with the loader.
#include "reader/symbols/symbol_file.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <elf.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <string>

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

using testing::TemporaryDirectory;

std::string name_at(const SymbolFile& file, uint64_t address) {
  const auto function = file.functions().find(address);
  return function ? std::string(function->name) : std::string();
}

// Checks names for addresses of the functions of full.so, with or without the hidden one.
void check_names(const SymbolFile& file, bool with_local) {
  const auto nm = nm_addresses(fixture("full.so"), "");
  REQUIRE(nm.count("fixture_local") == 1);
  CHECK(name_at(file, nm.at("fixture_add")) == "fixture_add");
  CHECK(name_at(file, nm.at("fixture_add") + 1) == "fixture_add");
  CHECK(name_at(file, nm.at("fixture_local")) == (with_local ? "fixture_local" : ""));
  CHECK(name_at(file, nm.at("fixture_indirect")) == "fixture_indirect");
  CHECK(name_at(file, nm.at("__fixture_aliased")) == "fixture_aliased");
  CHECK(name_at(file, nm.at("_Z11fixture_cppi")) == "_Z11fixture_cppi");
  const uint64_t unsized = nm.at("fixture_unsized");
  CHECK(nm.at("fixture_sized") == unsized + 16);
  CHECK(name_at(file, unsized + 15) == "fixture_unsized");
  CHECK(name_at(file, unsized + 16 + 7) == "fixture_sized");
  CHECK(name_at(file, unsized + 16 + 8) == "");
}

TEST_CASE("every function that nm lists is found where nm has it") {
  for (const char* name : {"full.so", "compressed.so", "program", "split_dwarf.so"}) {
    CAPTURE(name);
    const auto file = open_file(fixture(name));
    REQUIRE(file.ok());
    const auto nm = nm_addresses(fixture(name), "");
    CHECK(nm.size() > 15);
    for (const auto& entry : nm) {
      CAPTURE(entry.first);
      const uint64_t address = entry.second;
      const auto found = file->functions().find(address);
      REQUIRE(found);
      CHECK(found->start == address);
      const auto alias = nm.find(std::string(found->name));
      REQUIRE(alias != nm.end());
      CHECK(alias->second == address);
    }
  }
}

TEST_CASE("every address of a loaded library has the function that dladdr gives") {
  const auto file = open_file(fixture("stripped.so"));
  REQUIRE(file.ok());
  const std::unique_ptr<void, int (*)(void*)> handle(
      dlopen(fixture("stripped.so").c_str(), RTLD_NOW), dlclose);
  REQUIRE(handle != nullptr);
  Dl_info add;
  REQUIRE(dladdr(dlsym(handle.get(), "fixture_add"), &add) != 0);
  const auto* base = static_cast<const char*>(add.dli_fbase);
  const uint64_t unsized = nm_addresses(fixture("full.so"), "").at("fixture_unsized");
  size_t named = 0;
  for (const LoadSegment& segment : file->load_segments()) {
    if (!segment.executable) continue;
    for (uint64_t address = segment.start; address < segment.end; ++address) {
      // dladdr knows an unsized symbol by its first byte only.
      if (address > unsized && address < unsized + 16) continue;
      CAPTURE(address);
      Dl_info info;
      REQUIRE(dladdr(base + address, &info) != 0);
      const auto found = file->functions().find(address);
      REQUIRE(found.has_value() == (info.dli_sname != nullptr));
      if (!found) continue;
      CHECK(static_cast<const char*>(info.dli_saddr) == base + found->start);
      ++named;
    }
  }
  CHECK(named > 100);
}

TEST_CASE("full symbols, and .dynsym alone") {
  const auto full = open_file(fixture("full.so"));
  REQUIRE(full.ok());
  check_names(*full, true);
  const auto stripped = open_file(fixture("stripped.so"));
  REQUIRE(stripped.ok());
  check_names(*stripped, false);
}

TEST_CASE("MiniDebugInfo adds what .dynsym lacks") {
  const auto file = open_file(fixture("mini.so"));
  REQUIRE(file.ok());
  check_names(*file, true);
}

TEST_CASE("the debug file by .gnu_debuglink and by build-id adds its symbols") {
  TemporaryDirectory root;
  const DebugFiles debug_files(rooted_at(root.path()));
  copy_file(fixture("linked.so"), root.path() + "/lib/linked.so");
  const std::string path = root.path() + "/lib/linked.so";
  const auto alone = SymbolFile::open_untrusted(path, {}, debug_files);
  REQUIRE(alone.ok());
  check_names(*alone, false);

  copy_file(fixture("full.debug"), root.path() + "/lib/.debug/full.debug");
  const auto linked = SymbolFile::open_untrusted(path, {}, debug_files);
  REQUIRE(linked.ok());
  check_names(*linked, true);

  std::filesystem::remove(root.path() + "/lib/.debug/full.debug");
  copy_file(fixture("full.debug"), build_id_path(root.path(), linked->build_id()));
  const auto by_id = SymbolFile::open_untrusted(path, {}, debug_files);
  REQUIRE(by_id.ok());
  check_names(*by_id, true);
}

TEST_CASE("the build-id, as the file's note has it") {
  const auto file = open_file(fixture("full.so"));
  REQUIRE(file.ok());
  CHECK(file->build_id().size() == 20);
  CHECK(file->build_id() == build_id_of(fixture("stripped.so")));
  CHECK(file->build_id() == build_id_of(fixture("full.debug")));
  CHECK(file->build_id() != build_id_of(fixture("other.so")));
  CHECK(build_id_of(fixture("no_id.so")).empty());
  // The note: name size 4, descriptor size 20, type 3, "GNU\0", descriptor.
  const std::string bytes = read_file(fixture("full.so"));
  const std::string note("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
  const size_t at = bytes.find(note);
  REQUIRE(at != std::string::npos);
  CHECK(std::memcmp(bytes.data() + at + 16, file->build_id().data(), 20) == 0);
}

TEST_CASE("another build-id than the expected one is refused") {
  const DebugFiles debug_files(rooted_at("/nonexistent"));
  const BuildId expected = build_id_of(fixture("full.so"));
  CHECK(SymbolFile::open_untrusted(fixture("full.so"), expected, debug_files).ok());
  for (const char* name : {"other.so", "no_id.so"}) {
    const auto file = SymbolFile::open_untrusted(fixture(name), expected, debug_files);
    CHECK(absl::IsFailedPrecondition(file.status()));
  }
}

TEST_CASE("what is no ELF module gives an error") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  CHECK(absl::IsNotFound(open_file(path).status()));
  CHECK_FALSE(open_file("").ok());
  CHECK_FALSE(open_file(directory.path()).ok());
  CHECK_FALSE(open_file("/dev/zero").ok());
  CHECK_FALSE(open_file("/proc/self/maps").ok());
  for (const std::string& bytes :
       {std::string(), std::string("x"),
        std::string("\x7f"
                    "ELF"),
        std::string(100'000, '\xff'), std::string("!<arch>\n") + std::string(200, ' '),
        std::string("#!/bin/sh\n")}) {
    write_file(path, bytes);
    CHECK_FALSE(open_file(path).ok());
  }
  // Opening the FIFO for reading would wait for a writer.
  const std::string fifo = directory.path() + "/fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_FALSE(open_file(fifo).ok());
}

TEST_CASE("object files and core dumps are refused") {
  std::string bytes = read_file(fixture("full.so"));
  TemporaryDirectory directory;
  for (const int type : {ET_REL, ET_CORE, ET_NONE}) {
    bytes[offsetof(Elf64_Ehdr, e_type)] = static_cast<char>(type);
    write_file(directory.path() + "/file", bytes);
    CHECK_FALSE(open_file(directory.path() + "/file").ok());
  }
}

TEST_CASE("a sparse file that claims a huge symbol table is not read") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/sparse.so";
  std::string bytes = read_file(fixture("full.so"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  constexpr uint64_t kHuge = uint64_t{2} << 30;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    char* at = bytes.data() + header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, at, sizeof section);
    if (section.sh_type == SHT_SYMTAB) {
      section.sh_size = kHuge / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
    }
    std::memcpy(at, &section, sizeof section);
  }
  write_file(path, bytes);
  std::filesystem::resize_file(path, kHuge + bytes.size());
  CHECK_FALSE(open_file(path).ok());
}

}  // namespace
}  // namespace arctrace::reader
