// The command's side of the options protocol (options.hpp). It is freestanding like the
// decoder, so that both are compiled alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "src/shim_protocol/option_keys.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// Builds the text option by option; decode_options() returns patterns and types in the
// same order. An option that exceeds a limit is not in the text, and overflow() reports
// it. The text must not be used then, because a program with a part of its filter would
// record what the user did not ask for. The object takes 128 KiB, so it must be on the
// heap.
class OptionsEncoder {
 public:
  // The first thing that did not fit.
  enum class Overflow : uint8_t { kNone, kPatterns, kTypes };

  void set_library_calls(LibraryCalls which);
  void set_auto_args();
  void set_patcher(std::string_view path);
  void set_depth_max(uint32_t depth);
  void set_min_ns(uint64_t ns);
  void set_size_min(uint64_t bytes);

  // REQUIRES: `kind` is neither kArgs nor kWhen.
  void add_pattern(Pattern::Kind kind, std::string_view text);
  void add_args(std::string_view arg_specs, std::string_view pattern);
  void add_condition(std::string_view code, std::string_view pattern);

  // The texts of FunctionTypes.
  struct Types {
    std::string_view arg_specs, arg_names, retval_names;
  };
  // The file of the functions that are added next.
  void set_file(uint64_t device, uint64_t inode);
  void add_function(uint64_t address, const Types& types);
  void add_callee(std::string_view name, const Types& types);

  std::string_view text() const { return {text_, size_}; }
  Overflow overflow() const { return overflow_; }

 private:
  void put_option(OptionKey key, std::initializer_list<std::string_view> fields,
                  Overflow if_full);
  // Increments `count`. False: it is `max` already.
  bool has_room(size_t& count, size_t max, Overflow if_full);
  void put_number(OptionKey key, uint64_t number);
  bool put(char c);
  bool put_field(std::string_view field, bool is_last);

  size_t size_ = 0;
  size_t pattern_count_ = 0;
  size_t type_count_ = 0;
  Overflow overflow_ = Overflow::kNone;
  char text_[kOptionsTextMax];
};

}  // namespace arctrace::shim
