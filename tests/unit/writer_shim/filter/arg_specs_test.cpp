// Which arguments and return values the shim records of a function: by auto-args, types
// and patterns, the later of which take precedence.
#include <arctrace/format.h>
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/shim_protocol/arg_spec_code.hpp"
#include "src/shim_protocol/auto_args.hpp"
#include "tests/unit/writer_shim/fake_writer.hpp"
#include "writer_shim/filter/function_patterns.hpp"

namespace arctrace::shim {
namespace {

// The options of `text` during this object's lifetime.
class Options {
 public:
  explicit Options(const char* text) {
    decode_options(text, *options_);
    set_patterns(*options_);
    set_arg_options(*options_);
  }
  ~Options() {
    *options_ = {};
    set_patterns(*options_);
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

 private:
  std::unique_ptr<ShimOptions> options_ = std::make_unique<ShimOptions>();
};

// Entry `number` as text: the number of locks, arguments, and after "=" the return value.
std::string text_of(uint32_t number) {
  const arctrace_shim_call_args& specs = fake_writer().arg_specs[number];
  std::string text(specs.locks, 'L');
  const auto put = [&text](const arctrace_shim_arg_spec& spec) {
    text.append(encode_arg_spec(spec).text, kArgSpecSize);
  };
  for (uint32_t i = 0; i < specs.argument_count; ++i) put(specs.arguments[i]);
  if (specs.result.kind == 0) return text;
  text += '=';
  put(specs.result);
  return text;
}

std::string specs_of(const char* name, const FileAddress* at = nullptr) {
  const uint32_t number = arg_specs_of(name, at);
  return number == 0 ? "" : text_of(number);
}

std::string name_of(uint32_t id) { return id == 0 ? "" : fake_writer().names.at(id - 1); }

const FileAddress kHooked = {0x801, 77, 0x1130};
const FileAddress kNowhere = {};  // of a callee's types

}  // namespace

TEST_CASE("arg specs: auto-args are those of library functions only") {
  const Options options("autoargs=yes");
  CHECK(records_args());
  CHECK(specs_of("close") == "1b40=0b41");
  CHECK(specs_of("free") == "1g80");
  CHECK(specs_of("getpid") == "=0b40");
  CHECK(specs_of("no_such") == "");
  CHECK(specs_of("close", &kHooked) == "");
  // Two functions of which the same is recorded have one number.
  CHECK(arg_specs_of("close", nullptr) == arg_specs_of("fsync", nullptr));
  CHECK(arg_specs_of("close", nullptr) != arg_specs_of("free", nullptr));
}

TEST_CASE("arg specs: locks of library functions, if their arguments are not recorded") {
  {
    const Options options("");
    CHECK_FALSE(records_args());
    CHECK(specs_of("pthread_mutex_lock") == "L");
    CHECK(specs_of("pthread_mutex_trylock") == "L=0k40");
    CHECK(specs_of("pthread_cond_timedwait") == "LL");
    CHECK(specs_of("mtx_timedlock") == "L=0b40");
    CHECK(specs_of("pthread_mutex_lock", &kHooked) == "");
    CHECK(specs_of("pthread_mutex_init") == "");
    CHECK(specs_of("close") == "");
    // Calls of which only locks are recorded may take the fast path.
    CHECK(count_only_locks(arg_specs_of("pthread_mutex_lock", nullptr)) == 1);
    CHECK(count_only_locks(arg_specs_of("cnd_wait", nullptr)) == 2);
    CHECK(count_only_locks(arg_specs_of("sem_wait", nullptr)) == 1);
    CHECK(count_only_locks(arg_specs_of("pthread_spin_trylock", nullptr)) == 0);
  }
  {
    const Options options("args=2g80:sem_post;args=0d40:cnd_*");
    CHECK(specs_of("sem_post") == "2g80");
    CHECK(specs_of("cnd_wait") == "LL=0d40");
    CHECK(count_only_locks(arg_specs_of("cnd_wait", nullptr)) == 0);
    CHECK(count_only_locks(arg_specs_of("mtx_lock", nullptr)) == 1);
  }
  const Options options("autoargs=yes;args=2g80:sem_post");
  CHECK(specs_of("pthread_mutex_lock") == "1g80=0k40");
  CHECK(specs_of("mtx_trylock") == "1g80=0b40");
  CHECK(specs_of("cnd_wait") == "1g802g80=0b40");
  CHECK(specs_of("sem_post") == "2g80=0b41");
  CHECK(count_only_locks(arg_specs_of("pthread_mutex_lock", nullptr)) == 0);
}

TEST_CASE("arg specs: a pattern replaces what is known, part by part") {
  const Options options("autoargs=yes;args=2h80:close;args=0d80:fs*;args=1d402d40:*dup2");
  CHECK(specs_of("close") == "2h80=0b41");
  CHECK(specs_of("fsync") == "1b40=0d80");
  CHECK(specs_of("dup2") == "1d402d40=0b41");
  CHECK(specs_of("my_dup2") == "1d402d40");
}

TEST_CASE("arg specs: the later pattern counts") {
  const Options options("args=1b403b40:f*;args=2h80:fo*;args=0b40:f;args=0d40:f");
  CHECK(specs_of("f") == "1b403b40=0d40");
  CHECK(specs_of("foo") == "2h80");
  CHECK(specs_of("g") == "");
  CHECK(specs_of("foo.isra.0") == "");
  CHECK(specs_of("foo.constprop.0", &kHooked) == "");
  CHECK(specs_of("foo.cold") == "2h80");
}

TEST_CASE("arg specs: types, of a file's functions and of callees") {
  const Options options(
      "args=A:*;args=R:r*;"
      "file=801:4d;function=1130:1b402h800b40:count,text/1=one:/0=no;"
      "file=801:4E;function=1130:3b40::;"
      "callee=read_it:1h800d80:path:;callee=idle:0b40::");
  fake_writer().names.clear();
  const uint32_t number = arg_specs_of("work", &kHooked);
  CHECK(text_of(number) == "1b402h80");
  CHECK(name_of(fake_writer().arg_specs[number].names) == "count,text/1=one");
  CHECK(fake_writer().arg_specs[number].result_names == 0);
  const uint32_t both = arg_specs_of("run", &kHooked);
  CHECK(text_of(both) == "1b402h80=0b40");
  CHECK(name_of(fake_writer().arg_specs[both].result_names) == "/0=no");
  const FileAddress other = {0x801, 78, 0x1130};
  CHECK(specs_of("work", &other) == "3b40");
  const FileAddress unknown = {0x801, 79, 0x1130};
  CHECK(specs_of("work", &unknown) == "");

  CHECK(specs_of("read_it") == "1h80=0d80");
  CHECK(specs_of("read_it", &kNowhere) == "");
  CHECK(specs_of("idle") == "");       // it takes nothing, and -R does not name it
  CHECK(specs_of("close") == "1b40");  // by the auto-args
  CHECK(specs_of("rename") == "1h802h80=0b41");
}

TEST_CASE("arg specs: -R alone leaves the arguments of a type alone") {
  const Options options("args=R:*;file=801:4d;function=1130:1b402h800b40:a,b:/0=no");
  const uint32_t number = arg_specs_of("work", &kHooked);
  CHECK(text_of(number) == "=0b40");
  CHECK(fake_writer().arg_specs[number].names == 0);
  CHECK(specs_of("close") == "=0b41");
}

TEST_CASE("arg specs: a function that is hooked in many modules has one entry") {
  const Options options(
      "args=A:*;args=R:*;callee=read_it:1h800d80:path/1=one:/0=no;"
      "callee=bare:1h80::");
  fake_writer().names.clear();
  const uint32_t number = arg_specs_of("read_it", nullptr);
  const uint32_t bare = arg_specs_of("bare", nullptr);
  REQUIRE(number != 0);
  REQUIRE(bare != 0);
  for (int i = 0; i < 2 * ARCTRACE_SHIM_CALL_ARGS_MAX; ++i) {
    REQUIRE(arg_specs_of("read_it", nullptr) == number);
    REQUIRE(arg_specs_of("bare", nullptr) == bare);
  }
  CHECK(fake_writer().names == std::vector<std::string>{"path/1=one", "/0=no"});
}

// These are all that options can ask for: as many types as possible, each with another
// list; auto-args; and as many pairs of patterns as possible for a function's arguments
// and its return value.
TEST_CASE("arg specs: no options fill the table") {
  constexpr int kThird = (kPatternsMax - 1) / 3;
  const auto name_of_pattern = [](char sort, int i) {
    return std::string(1, sort) + std::to_string(i) + "_";
  };
  const auto list = [](int i) {  // a list of arguments for each number
    return "1b40" + std::to_string(i % 5 + 1) + "b40" + std::to_string(i / 5 + 1) + "d40";
  };
  const auto result = [](int i) {  // and a return value
    return std::string("0") + "bcgh"[i / 12] + "1248"[i / 3 % 4] + "012"[i % 3];
  };
  std::string text = "autoargs=yes;args=A:typed_*";
  const auto add_pattern = [&](const std::string& specs, char sort, int i) {
    text += ";args=" + specs + ":*" + name_of_pattern(sort, i) + "*";
  };
  for (int i = 0; i < kThird; ++i) add_pattern(list(i) + result(i), 'x', i);
  for (int i = 0; i < kThird; ++i) add_pattern("1h80" + list(i), 'y', i);
  for (int i = 0; i < kThird; ++i) add_pattern(result(kThird + i), 'z', i);
  for (size_t i = 0; i < kTypesMax; ++i) {
    text += ";callee=typed_" + std::to_string(i) + ":1b40:" + std::to_string(i) + ":";
  }
  REQUIRE(text.size() <= kOptionsTextMax);
  const Options options(text.c_str());
  std::set<uint32_t> numbers;
  size_t functions = 0;
  const auto hook = [&](const std::string& name) {
    const uint32_t number = arg_specs_of(name.c_str(), nullptr);
    REQUIRE(number != 0);
    numbers.insert(number);
    ++functions;
  };
  for (size_t i = 0; i < kTypesMax; ++i) hook("typed_" + std::to_string(i));
  for (int i = 0; i < kThird; ++i) {
    for (const std::string pair : {"xy", "xz", "yz"}) {
      for (int j = 0; j < kThird; ++j) {
        hook(name_of_pattern(pair[0], i) + name_of_pattern(pair[1], j));
      }
    }
    for (const char sort : {'x', 'y', 'z'}) hook(name_of_pattern(sort, i));
  }
  CHECK(functions > 3400);
  CHECK(numbers.size() == functions);
  for (const AutoArgs& function : kAutoArgsTable) hook(function.name.text);
}

TEST_CASE("arg specs: hostile text") {
  const Options options(
      "args=:none;args=1b4:torn;args=1b40zzzz2b40:cut;args=B:letter;"
      "args=1b401b401b401b401b401b401b401b402b40:many");
  CHECK(specs_of("none") == "");
  CHECK(specs_of("torn") == "");
  CHECK(specs_of("cut") == "1b40");
  CHECK(specs_of("letter") == "");
  std::string eight;
  for (int i = 0; i < ARCTRACE_SHIM_RECORDED_ARGS_MAX; ++i) eight += "1b40";
  CHECK(specs_of("many") == eight);
}

}  // namespace arctrace::shim
