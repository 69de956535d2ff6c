// The table of export formats: their names, what each is for, and how it is made.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

struct ExportFormat {
  const char* name;  // the value of --to
  const char* help;  // what opens it, to follow the name
  std::unique_ptr<Exporter> (*make)(const ExportSettings&);
  bool has_weight = false;  // it has sums, of which --weight says what they are of
  bool has_exact = false;   // it may leave calls out, except those that are asked for
  bool has_events = false;  // --where says which
  bool is_binary = false;   // a terminal is no place for it
  // Viewers load all of it: larger files than this get a warning. 0: they do not.
  uint64_t comfortable_bytes = 0;
};

// All formats, in the order in which --help lists them.
std::span<const ExportFormat> export_formats();

}  // namespace arctrace::reader
