// Collects from blocks of definitions which events of the API the traced processes
// define. At the end of a recording they tell whether its filter of events matched any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace arctrace {

class DefinedEvents {
 public:
  // Notes the events in a copy of a block of definitions. The same block may be passed
  // again.
  void note_untrusted(std::span<const std::byte> block);

  // The lowest level with which an event of each name was defined. Names are untrusted
  // bytes.
  const std::map<std::string, uint32_t>& levels() const { return levels_; }
  // False: there were more names than are kept.
  bool is_complete() const { return is_complete_; }

 private:
  std::map<std::string, uint32_t> levels_;
  bool is_complete_ = true;
};

}  // namespace arctrace
