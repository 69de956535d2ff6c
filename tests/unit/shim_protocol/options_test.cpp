// The options protocol: the shim decodes what the command encodes, up to the limits of
// both, and hostile text does no harm.
#include "src/shim_protocol/options.hpp"

#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "src/shim_protocol/arg_spec_code.hpp"
#include "tests/support/random.hpp"

namespace arctrace::shim {
namespace {

using Overflow = OptionsEncoder::Overflow;

constexpr uint64_t kSeed = 20261124;

std::unique_ptr<ShimOptions> decoded(const std::string& text) {
  auto options = std::make_unique<ShimOptions>();
  decode_options(text.c_str(), *options);
  return options;
}

// Text with characters of names, and those that the protocol uses itself.
std::string random_text(testing::Random& random) {
  static constexpr char kBytes[] = "ab%;:=,/01F\n\x7f\xc3*?[]\\ re";
  std::string text;
  for (uint64_t n = random.next() % 12; n > 0; --n) {
    text += kBytes[random.next() % (sizeof kBytes - 1)];
  }
  return text;
}

uint64_t random_number(testing::Random& random) {
  return random.next() >> random.next() % 64;
}

// Everything that was put into the encoder, in order.
struct Wanted {
  LibraryCalls library_calls = LibraryCalls::kNone;
  bool auto_args = false;
  uint32_t depth_max = 0;
  uint64_t min_ns = 0;
  uint64_t size_min = 0;
  struct PatternTexts {
    Pattern::Kind kind;
    std::string text, arg_specs;
  };
  struct TypeTexts {
    FileAddress at;
    bool is_named;
    std::string name, arg_specs, arg_names, retval_names;
  };
  std::vector<PatternTexts> patterns;
  std::vector<TypeTexts> types;
};

Wanted random_options(testing::Random& random) {
  Wanted wanted;
  wanted.library_calls = static_cast<LibraryCalls>(random.next() % 3);
  wanted.auto_args = random.next() % 2 != 0;
  wanted.depth_max = static_cast<uint32_t>(random_number(random));
  wanted.min_ns = random_number(random);
  wanted.size_min = random_number(random);
  for (uint64_t n = random.next() % (kPatternsMax + 1); n > 0; --n) {
    const auto kind = static_cast<Pattern::Kind>(random.next() % 4);
    wanted.patterns.push_back({kind, random_text(random), random_text(random)});
  }
  FileAddress at{};
  for (uint64_t n = random.next() % 40; n > 0; --n) {
    if (random.next() % 4 == 0) {
      at.device = random_number(random);
      at.inode = random_number(random);
    }
    at.address = random_number(random);
    const bool is_named = random.next() % 2 != 0;
    wanted.types.push_back({is_named ? FileAddress{} : at, is_named, random_text(random),
                            random_text(random), random_text(random),
                            random_text(random)});
  }
  return wanted;
}

void encode(const Wanted& wanted, OptionsEncoder& encoder) {
  encoder.set_library_calls(wanted.library_calls);
  for (const auto& pattern : wanted.patterns) {
    if (pattern.kind == Pattern::Kind::kArgs) {
      encoder.add_args(pattern.arg_specs, pattern.text);
    } else {
      encoder.add_pattern(pattern.kind, pattern.text);
    }
  }
  if (wanted.auto_args) encoder.set_auto_args();
  encoder.set_depth_max(wanted.depth_max);
  encoder.set_min_ns(wanted.min_ns);
  encoder.set_size_min(wanted.size_min);
  for (const auto& types : wanted.types) {
    const OptionsEncoder::Types texts{types.arg_specs, types.arg_names,
                                      types.retval_names};
    if (types.is_named) {
      encoder.add_callee(types.name, texts);
    } else {
      encoder.set_file(types.at.device, types.at.inode);
      encoder.add_function(types.at.address, texts);
    }
  }
}

void compare(const ShimOptions& options, const Wanted& wanted) {
  REQUIRE(options.library_calls == wanted.library_calls);
  REQUIRE(options.auto_args == wanted.auto_args);
  REQUIRE(options.depth_max == wanted.depth_max);
  REQUIRE(options.min_ns == wanted.min_ns);
  REQUIRE(options.size_min == wanted.size_min);
  REQUIRE(options.pattern_count == wanted.patterns.size());
  for (size_t i = 0; i < options.pattern_count; ++i) {
    const Pattern& pattern = options.patterns[i];
    REQUIRE(pattern.kind == wanted.patterns[i].kind);
    REQUIRE(pattern.text == wanted.patterns[i].text);
    if (pattern.kind == Pattern::Kind::kArgs) {
      REQUIRE(pattern.arg_specs == wanted.patterns[i].arg_specs);
    } else {
      REQUIRE(pattern.arg_specs == nullptr);
    }
  }
  REQUIRE(options.type_count == wanted.types.size());
  for (size_t i = 0; i < options.type_count; ++i) {
    const FunctionTypes& types = options.types[i];
    REQUIRE((types.at == wanted.types[i].at));
    if (wanted.types[i].is_named) {
      REQUIRE(types.name == wanted.types[i].name);
    } else {
      REQUIRE(types.name == nullptr);
    }
    REQUIRE(types.arg_specs == wanted.types[i].arg_specs);
    REQUIRE(types.arg_names == wanted.types[i].arg_names);
    REQUIRE(types.retval_names == wanted.types[i].retval_names);
  }
}

// ShimOptions and a text, each of which ends where inaccessible memory begins.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t size) : size_((size + kPage - 1) / kPage * kPage) {
    bytes_ = mmap(nullptr, size_ + kPage, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(bytes_ != MAP_FAILED);
    REQUIRE(mprotect(static_cast<char*>(bytes_) + size_, kPage, PROT_NONE) == 0);
  }
  ~GuardedMemory() { munmap(bytes_, size_ + kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* last(size_t size) { return static_cast<char*>(bytes_) + size_ - size; }

 private:
  static constexpr size_t kPage = 4096;
  size_t size_;
  void* bytes_ = nullptr;
};

// Whether each pointer leads to a text within `texts`, and each count is within bounds.
bool is_sound(const ShimOptions& options) {
  const char* const end = options.texts + sizeof options.texts;
  const auto is_text = [&](const char* text) {
    return text >= options.texts && text < end &&
           strnlen(text, static_cast<size_t>(end - text)) <
               static_cast<size_t>(end - text);
  };
  bool sound = options.pattern_count <= kPatternsMax && options.type_count <= kTypesMax;
  for (size_t i = 0; sound && i < options.pattern_count; ++i) {
    const Pattern& pattern = options.patterns[i];
    sound = is_text(pattern.text) &&
            (pattern.kind == Pattern::Kind::kArgs) == (pattern.arg_specs != nullptr) &&
            (pattern.arg_specs == nullptr || is_text(pattern.arg_specs));
  }
  for (size_t i = 0; sound && i < options.type_count; ++i) {
    const FunctionTypes& types = options.types[i];
    sound = (types.name == nullptr || is_text(types.name)) && is_text(types.arg_specs) &&
            is_text(types.arg_names) && is_text(types.retval_names);
  }
  return sound;
}

}  // namespace

TEST_CASE("options: what is encoded is decoded") {
  CAPTURE(kSeed);
  testing::Random random(kSeed);
  for (int i = 0; i < 500; ++i) {
    const Wanted wanted = random_options(random);
    const auto encoder = std::make_unique<OptionsEncoder>();
    encode(wanted, *encoder);
    REQUIRE(encoder->overflow() == Overflow::kNone);
    compare(*decoded(std::string(encoder->text())), wanted);
  }
}

TEST_CASE("options: a zero byte ends its pattern, and not the text") {
  const auto encoder = std::make_unique<OptionsEncoder>();
  encoder->add_pattern(Pattern::Kind::kFilter, std::string("a\0b", 3));
  encoder->set_depth_max(7);
  const auto options = decoded(std::string(encoder->text()));
  CHECK(options->patterns[0].text == std::string("a"));
  CHECK(options->depth_max == 7);
}

TEST_CASE("options: no more patterns and types than have room") {
  const auto encoder = std::make_unique<OptionsEncoder>();
  for (size_t i = 0; i < kPatternsMax; ++i) {
    encoder->add_pattern(Pattern::Kind::kFilter, "f" + std::to_string(i));
  }
  for (size_t i = 0; i < kTypesMax; ++i) encoder->add_callee("g", {"1b40", "", ""});
  REQUIRE(encoder->overflow() == Overflow::kNone);
  const std::string full(encoder->text());
  const auto options = decoded(full);
  CHECK(options->pattern_count == kPatternsMax);
  CHECK(options->patterns[kPatternsMax - 1].text == std::string("f63"));
  CHECK(options->type_count == kTypesMax);

  SUBCASE("one type more") {
    encoder->add_function(1, {});
    CHECK(encoder->overflow() == Overflow::kTypes);
  }
  SUBCASE("one pattern more") {
    encoder->add_args("A", "h");
    CHECK(encoder->overflow() == Overflow::kPatterns);
    encoder->add_function(1, {});
    CHECK(encoder->overflow() == Overflow::kPatterns);  // this overflow came first
  }
  CHECK(encoder->text() == full);
  // The text is composed by hand here.
  const auto more = decoded(full + ";filter=one;callee=one:1b40::;depth=7");
  CHECK(more->pattern_count == kPatternsMax);
  CHECK(more->type_count == kTypesMax);
  CHECK(more->depth_max == 7);
}

TEST_CASE("options: the longest text is decoded, one byte more is not encoded") {
  const size_t rest = kOptionsTextMax - std::strlen("libcall=all;filter=");
  for (const size_t size : {rest - 1, rest, rest + 1}) {
    const auto encoder = std::make_unique<OptionsEncoder>();
    encoder->set_library_calls(LibraryCalls::kAll);
    encoder->add_pattern(Pattern::Kind::kFilter, std::string(size, 'x'));
    CHECK((encoder->overflow() == Overflow::kNone) == (size <= rest));
    if (size > rest) {
      CHECK(encoder->text() == "libcall=all");
      continue;
    }
    const auto options = decoded(std::string(encoder->text()));
    REQUIRE(options->pattern_count == 1);
    CHECK(std::strlen(options->patterns[0].text) == size);
  }
  // An encoded byte takes three.
  const auto encoder = std::make_unique<OptionsEncoder>();
  encoder->set_library_calls(LibraryCalls::kAll);
  encoder->add_pattern(Pattern::Kind::kNotrace, std::string(rest / 3 + 1, ';'));
  CHECK(encoder->overflow() == Overflow::kPatterns);
  // The text is composed by hand here: all of an option counts or nothing.
  CHECK(decoded("depth=5;filter=" + std::string(kOptionsTextMax, 'x'))->depth_max == 0);
}

// The kernel's limit is 32 pages; on machines with larger pages the limit is larger.
TEST_CASE("options: a program starts with the longest text") {
  const auto starts_with_text_of = [](size_t size) {
    std::string variable = std::string(kOptionsVariable) + "=" + std::string(size, 'x');
    char* environment[] = {variable.data(), nullptr};
    char program[] = "/bin/true";
    char* arguments[] = {program, nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, program, nullptr, nullptr, arguments, environment) != 0) {
      return false;
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status == 0;
  };
  CHECK(starts_with_text_of(kOptionsTextMax));
  if (sysconf(_SC_PAGESIZE) == 4096) {
    CHECK_FALSE(starts_with_text_of(kOptionsTextMax + 1));
  }
}

TEST_CASE("options: text that no recorder wrote") {
  CHECK(decoded("")->pattern_count == 0);
  const auto none = std::make_unique<ShimOptions>();
  decode_options(nullptr, *none);
  CHECK(none->pattern_count == 0);
  CHECK_FALSE(none->filters());
  CHECK_FALSE(none->records_args());

  const auto odd = decoded(";;libcall=nearly;filter;=x;filte=x;depth=;time=7up;x=1");
  CHECK(odd->library_calls == LibraryCalls::kNone);
  CHECK(odd->pattern_count == 0);
  CHECK(odd->depth_max == 0);
  CHECK(odd->min_ns == 7);

  const auto large =
      decoded("depth=4294967296;time=18446744073709551616;size=99999999999999999999");
  CHECK(large->depth_max == UINT32_MAX);
  CHECK(large->min_ns == UINT64_MAX);
  CHECK(large->size_min == UINT64_MAX);
  CHECK(large->filters());

  // No code has fewer bytes than one: nothing is filtered, and calls are not filtered by
  // size.
  CHECK(decoded("size=1")->size_min == 1);
  CHECK_FALSE(decoded("size=1")->filters());
  CHECK(decoded("size=2")->filters());

  const auto torn = decoded("filter=%;filter=%4;filter=%4G;filter=%41%;function=;args=A");
  REQUIRE(torn->pattern_count == 5);
  CHECK(torn->patterns[0].text == std::string("%"));
  CHECK(torn->patterns[1].text == std::string("%4"));
  CHECK(torn->patterns[2].text == std::string("%4G"));
  CHECK(torn->patterns[3].text == std::string("A%"));
  CHECK(torn->patterns[4].text == std::string());
  CHECK(torn->patterns[4].arg_specs == std::string("A"));
  CHECK(torn->records_args());
  REQUIRE(torn->type_count == 1);
  CHECK(torn->types[0].retval_names == std::string());
}

TEST_CASE("options: a hostile text is read to its end, and no further") {
  CAPTURE(kSeed);
  testing::Random random(kSeed);
  GuardedMemory options_memory(sizeof(ShimOptions));
  GuardedMemory text_memory(kOptionsTextMax + 2);
  for (int i = 0; i < 600; ++i) {
    const auto encoder = std::make_unique<OptionsEncoder>();
    encode(random_options(random), *encoder);
    std::string text(encoder->text());
    if (i % 20 == 0) {
      // These options have more fields than bytes, up to the end of the text.
      const char* const option = i % 40 == 0 ? "callee=;" : "file=;";
      while (text.size() + 8 < kOptionsTextMax) text += option;
    }
    for (uint64_t n = random.next() % 30; n > 0 && !text.empty(); --n) {
      static constexpr char kBytes[] =
          "%;:=\xff\x01"
          "a";
      text[random.next() % text.size()] = kBytes[random.next() % (sizeof kBytes - 1)];
    }
    if (!text.empty()) text.resize(text.size() - random.next() % text.size());
    char* const copy = text_memory.last(text.size() + 1);
    std::memcpy(copy, text.c_str(), text.size() + 1);
    auto* const options = new (options_memory.last(sizeof(ShimOptions))) ShimOptions();
    decode_options(copy, *options);
    REQUIRE(is_sound(*options));
  }
}

TEST_CASE("options: specs of arguments are decoded as they were encoded") {
  size_t valid = 0;
  for (unsigned number = 0; number < 32; ++number) {
    for (unsigned kind = 0; kind < 256; ++kind) {
      for (unsigned size = 0; size < 16; ++size) {
        for (unsigned failure = 0; failure < 4; ++failure) {
          const arctrace_shim_arg_spec spec = {.kind = static_cast<uint8_t>(kind),
                                               .argument = static_cast<uint8_t>(number),
                                               .size = static_cast<uint8_t>(size),
                                               .failure = static_cast<uint8_t>(failure)};
          if (!is_valid_arg_spec(spec)) continue;
          ++valid;
          const std::string text(encode_arg_spec(spec).text, kArgSpecSize);
          arctrace_shim_arg_spec read{};
          REQUIRE(decode_arg_spec(text.c_str(), read));
          REQUIRE(std::memcmp(&read, &spec, sizeof spec) == 0);
        }
      }
    }
  }
  CHECK(valid > 1000);
  arctrace_shim_arg_spec spec{};
  for (const char* text :
       {"", "1", "1b4", "1a40", "1z40", "1b30", "1b43", "~b40", "1i40"}) {
    INFO(text);
    CHECK_FALSE(decode_arg_spec(text, spec));
  }
}

}  // namespace arctrace::shim
