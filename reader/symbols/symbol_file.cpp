#include "reader/symbols/symbol_file.hpp"

#include <absl/status/status.h>
#include <lzma.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

namespace arctrace::reader {
namespace {

constexpr uint64_t kDecoderBytesMax = uint64_t{128} << 20;

}  // namespace

std::optional<std::string> unpack_xz_untrusted(const std::string& packed,
                                               size_t size_max) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kDecoderBytesMax, 0) != LZMA_OK) return std::nullopt;
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> ender(&stream, lzma_end);

  // char may alias anything, liblzma's uint8_t included.
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::array<uint8_t, 1 << 16> chunk{};
  std::string unpacked;
  for (;;) {
    stream.next_out = chunk.data();
    stream.avail_out = chunk.size();
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    if (result != LZMA_OK && result != LZMA_STREAM_END) return std::nullopt;
    const size_t size = chunk.size() - stream.avail_out;
    if (size > size_max - unpacked.size()) return std::nullopt;
    unpacked.append(chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(size));
    if (result == LZMA_STREAM_END) return unpacked;
  }
}

namespace {

// The limit for MiniDebugInfo, which is a symbol table: the largest programs have tens of
// megabytes.
constexpr size_t kMiniDebugBytesMax = size_t{256} << 20;

void append(std::vector<ElfSymbolTable>& tables, const ElfFile& file) {
  std::vector<ElfSymbolTable> more = file.function_symbols();
  std::move(more.begin(), more.end(), std::back_inserter(tables));
}

}  // namespace

SymbolFile::SymbolFile(std::string path, const DebugFiles& debug_files)
    : path_(std::move(path)), debug_files_(debug_files) {}

absl::StatusOr<SymbolFile> SymbolFile::open_untrusted(const std::string& path,
                                                      const BuildId& build_id,
                                                      const DebugFiles& debug_files) {
  absl::StatusOr<ElfFile> elf = ElfFile::open_untrusted(path);
  if (!elf.ok()) return elf.status();
  if (!elf->is_module()) {
    return absl::InvalidArgumentError(path + ": not an executable or shared object");
  }
  SymbolFile file(path, debug_files);
  file.build_id_ = elf->build_id();
  if (!build_id.empty() && build_id != file.build_id_) {
    return absl::FailedPreconditionError(path +
                                         ": build-id differs from the recorded one");
  }
  file.load_segments_ = elf->load_segments();

  std::vector<ElfSymbolTable> tables = elf->function_symbols();
  std::optional<DebugFile> debug = debug_files.find_untrusted(path, *elf);
  const bool stripped = !elf->has_section(".symtab");
  if (!debug && stripped) debug = debug_files.download_untrusted(file.build_id_);
  if (debug) append(tables, debug->elf);
  if (const auto packed = elf->section_bytes(".gnu_debugdata")) {
    if (auto bytes = unpack_xz_untrusted(*packed, kMiniDebugBytesMax)) {
      const absl::StatusOr<ElfFile> mini =
          ElfFile::from_bytes_untrusted(*std::move(bytes), path + " (.gnu_debugdata)");
      if (mini.ok() && mini->is_module()) append(tables, *mini);
    }
  }
  file.functions_ = FunctionTable(file.load_segments_, tables);
  return file;
}

std::optional<SourceLine> SymbolFile::find_line(uint64_t address) {
  if (!lines_tried_) {
    lines_tried_ = true;
    if (auto lines = open_lines()) lines_.emplace(*std::move(lines));
  }
  return lines_ ? lines_->find(address) : std::nullopt;
}

std::optional<LineTable> SymbolFile::open_lines() const {
  absl::StatusOr<ElfFile> elf = ElfFile::open_untrusted(path_);
  if (!elf.ok() || elf->build_id() != build_id_) return std::nullopt;
  std::optional<DebugFile> debug = debug_files_.find_untrusted(path_, *elf);
  if (auto lines = LineTable::open_untrusted(*std::move(elf), path_, debug_files_)) {
    return lines;
  }
  if (!debug) debug = debug_files_.download_untrusted(build_id_);
  if (!debug) return std::nullopt;
  return LineTable::open_untrusted(std::move(debug->elf), debug->path, debug_files_);
}

}  // namespace arctrace::reader
