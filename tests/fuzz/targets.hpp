// The fuzz targets: each takes any bytes, and aborts if something is false that must be
// true for any.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace arctrace::fuzz {

using Bytes = std::span<const std::byte>;

// A trace file, as info, dump, check and report read it.
void trace_file(Bytes input);
// The image of an abandoned buffer: read as it is, and recovered.
void buffer_image(Bytes input);
// One block with its header, as the collector and the reader walk it.
void block(Bytes input);
// The records of a block of definitions, and data that uses them.
void definitions(Bytes input);
// A file that names generated code: as a perf map, and as a jitdump.
void code_file(Bytes input);
// An ELF file with DWARF data, for the types of its functions.
void function_types(Bytes input);
// A file of options, as --config names it.
void config(Bytes input);
// The text that the command hands to the shim; and a command line, an argument a line.
void options(Bytes input);
// The path of a module, a newline, and what the module says where its debug file is.
void debug_link(Bytes input);
// An ELF file, whose functions are analysed.
void module_code(Bytes input);
// A plan of the cache, with a checksum that is made right.
void patch_plan(Bytes input);

struct Target {
  std::string_view name;
  void (*run)(Bytes input);
};
inline constexpr Target kTargets[] = {
    {"trace_file", trace_file}, {"buffer_image", buffer_image},
    {"block", block},           {"definitions", definitions},
    {"code_file", code_file},   {"function_types", function_types},
    {"config", config},         {"options", options},
    {"debug_link", debug_link}, {"module_code", module_code},
    {"patch_plan", patch_plan}};

}  // namespace arctrace::fuzz
