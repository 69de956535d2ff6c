// Thousands of damaged files: each must give an error or some answer, never a crash or a
// hang.
#include <doctest/doctest.h>
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "reader/symbols/data_symbols.hpp"
#include "reader/symbols/symbol_file.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

using testing::TemporaryDirectory;

// Seed and number of files can be given, to repeat a failure or to find more.
unsigned number_from_environment(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 0))
                         : otherwise;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string mutate(std::string bytes) {
    switch (below(8)) {
      case 0:
        bytes.resize(below(bytes.size()));
        break;
      case 1:
        flip_bits(bytes, 0, bytes.size());
        break;
      case 2:
        flip_bits(bytes, 0, sizeof(Elf64_Ehdr) + 12 * sizeof(Elf64_Phdr));
        break;
      case 3:
        flip_bits(bytes, section_headers(bytes), bytes.size());
        break;
      case 4:
      case 5:
        set_words(bytes);
        break;
      default:
        damage_section(bytes);
    }
    return bytes;
  }

  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

 private:
  static size_t section_headers(const std::string& bytes) {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    return header.e_shoff;
  }

  void flip_bits(std::string& bytes, size_t start, size_t end) {
    for (size_t count = 1 + below(8); count > 0; --count) {
      char& byte = bytes[start + below(end - start)];
      byte = static_cast<char>(byte ^ (1 << below(8)));
    }
  }

  // Sets sizes, offsets and counts to their limits, mostly in the headers.
  void set_words(std::string& bytes) {
    const uint64_t values[] = {0,          1,          UINT64_MAX,   INT64_MAX,
                               UINT32_MAX, 0x80000000, bytes.size(), bytes.size() - 1,
                               random_()};
    const size_t headers = section_headers(bytes);
    for (size_t count = 1 + below(3); count > 0; --count) {
      const uint64_t value = values[below(std::size(values))];
      const size_t size = size_t{1} << below(4);
      const size_t start = below(3) == 0 ? 0 : headers;
      const size_t at = (start + below(bytes.size() - start - size)) & ~(size - 1);
      std::memcpy(bytes.data() + at, &value, size);
    }
  }

  // Damages several bytes of one section, a debug section more often than not.
  void damage_section(std::string& bytes) {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    Elf64_Shdr section;
    do {
      std::memcpy(&section,
                  bytes.data() + header.e_shoff + below(header.e_shnum) * sizeof section,
                  sizeof section);
    } while (section.sh_type == SHT_NOBITS || section.sh_size == 0 ||
             ((section.sh_flags & SHF_ALLOC) != 0 && below(8) != 0));
    for (size_t count = 1 + below(6); count > 0; --count) {
      const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random_())};
      bytes[section.sh_offset + below(section.sh_size)] =
          static_cast<char>(values[below(std::size(values))]);
    }
  }

  std::mt19937_64 random_;
};

TEST_CASE("mutated files") {
  const unsigned rounds = number_from_environment("SYMBOLS_ROUNDS", 600);
  Mutator mutator(testing::test_seed());
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/module.so";
  SymbolOptions options;
  options.debug_root = directory.path();
  const DebugFiles debug_files(options);
  copy_file(fixture("full.debug"), directory.path() + "/full.debug");
  size_t opened = 0;
  size_t named = 0;
  size_t with_line = 0;
  for (const char* name : {"full.so", "stripped.so", "linked.so", "mini.so", "dwarf4.so",
                           "split_dwarf.so", "compressed.so", "program"}) {
    const std::string bytes = read_file(fixture(name));
    const auto nm = nm_addresses(fixture(name), "--dynamic");
    for (unsigned round = 0; round < rounds; ++round) {
      write_file(path, mutator.mutate(bytes));
      auto file = SymbolFile::open_untrusted(path, {}, debug_files);
      if (!file.ok()) continue;
      ++opened;
      for (const auto& [symbol, address] : nm) {
        named += file->functions().find(address) ? 1U : 0U;
        with_line += file->find_line(address) ? 1U : 0U;
      }
      file->functions().find(mutator.below(SIZE_MAX));
      file->find_line(mutator.below(SIZE_MAX));
    }
  }
  // The damage must be light enough that most files are tested.
  CHECK(opened > rounds);
  CHECK(named > rounds);
  CHECK(with_line > rounds);
}

TEST_CASE("mutated files with variables") {
  const unsigned rounds = number_from_environment("SYMBOLS_ROUNDS", 600);
  Mutator mutator(testing::test_seed());
  TemporaryDirectory directory;
  const std::string path = directory.path("module.so");
  const std::string bytes = read_file(fixture("typed.so"));
  const auto nm = nm_addresses(fixture("typed.so"), "", "OBJECT");
  size_t members = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    write_file(path, mutator.mutate(bytes));
    DataSymbols symbols(rooted_at(directory.path()));
    for (const auto& [symbol, address] : nm) {
      for (uint64_t offset = 0; offset < 128; offset += 24) {
        const auto* variable = symbols.find(path, {}, address + offset);
        if (variable == nullptr) continue;
        const std::string name =
            symbols.name_in(path, {}, variable->name, variable->start, address + offset);
        members += name.find('.') != std::string::npos ? 1U : 0U;
      }
    }
  }
  CHECK(members > rounds);
}

}  // namespace
}  // namespace arctrace::reader
