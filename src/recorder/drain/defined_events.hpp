// Collects from blocks of definitions which events of the API the traced processes
// define, and what they name. At the end of a recording these tell whether its filter of
// events, instants and counters matched any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace arctrace {

class DefinedEvents {
 public:
  using Names = std::set<std::string, std::less<>>;

  // Notes the events and names in a copy of a block of definitions. The same block may be
  // passed again.
  void note_untrusted(std::span<const std::byte> block);

  // The lowest level with which an event of each name was defined. Names are untrusted
  // bytes.
  const std::map<std::string, uint32_t>& levels() const { return levels_; }
  // The types of their fields, by the fields' names, which are untrusted, too.
  const std::map<std::string, std::set<uint32_t>>& fields() const { return fields_; }
  // What was named: instants, counters, scopes, and functions whose frames have names.
  // Untrusted bytes, too.
  const Names& names() const { return names_; }
  // False: there were more than are kept.
  bool has_all_events() const { return has_all_events_; }
  bool has_all_names() const { return has_all_names_; }

 private:
  void note_event(std::span<const std::byte> body);
  void note_field(std::string name, uint32_t type);
  void note_name(std::span<const std::byte> body);

  std::map<std::string, uint32_t> levels_;
  std::map<std::string, std::set<uint32_t>> fields_;
  Names names_;
  bool has_all_events_ = true, has_all_names_ = true;
};

}  // namespace arctrace
