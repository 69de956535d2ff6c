#include "reader/trace/stored_symbols.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <utility>

#include "reader/trace/record.hpp"
#include "src/base/language_names.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kTextBytesMax = 64 << 10;
// A new chunk begins after so many bytes. One entry is smaller than the rest of the space
// in a chunk.
constexpr size_t kChunkBytes = size_t{1} << 20;
static_assert(kChunkBytes + 8 * kTextBytesMax < StoredSymbols::kChunkBytesMax);

// Appends to one chunk after another. A module that does not end in one begins again in
// the next.
class ChunkWriter {
 public:
  explicit ChunkWriter(uint32_t flags) : flags_(flags) {}

  void add(const ModuleSymbols& module) {
    if (module.functions.empty() && module.exports.empty()) return;
    if (module.path.size() > kTextBytesMax || module.build_id.size() > kTextBytesMax) {
      return;
    }
    module_ = &module;
    begin_module();
    for (const auto& [address, function] : module.functions) {
      if (function.name.size() > kTextBytesMax) continue;
      begin_entry();
      const bool has_file = function.file.size() <= kTextBytesMax;
      append(arctrace_symbols_function{
          .address = address,
          .start = function.start,
          .line = has_file ? function.line : 0,
          .name_size = static_cast<uint32_t>(function.name.size()),
          .file_size = static_cast<uint32_t>(has_file ? function.file.size() : 0)});
      append_text(function.name);
      if (has_file) append_text(function.file);
      ++head_.functions;
    }
    for (const std::string& name : module.exports) {
      if (name.size() > kTextBytesMax) continue;
      begin_entry();
      append(arctrace_symbols_export{static_cast<uint32_t>(name.size())});
      append_text(name);
      ++head_.exports;
    }
    end_module();
  }

  std::vector<std::vector<std::byte>> finish() { return std::move(chunks_); }

 private:
  std::vector<std::byte>& chunk() { return chunks_.back(); }

  void begin_module() {
    if (chunks_.empty() || chunk().size() >= kChunkBytes) {
      chunks_.emplace_back();
      append(arctrace_symbols{flags_, 0});
    }
    head_at_ = chunk().size();
    head_ = {0, 0, static_cast<uint32_t>(module_->build_id.size()),
             static_cast<uint32_t>(module_->path.size())};
    append(head_);
    append_bytes(module_->build_id);
    append_text(module_->path);
  }

  void end_module() { __builtin_memcpy(chunk().data() + head_at_, &head_, sizeof head_); }

  void begin_entry() {
    if (chunk().size() < kChunkBytes) return;
    end_module();
    begin_module();
  }

  template <class Part>
  void append(const Part& part) {
    append_bytes(std::as_bytes(std::span(&part, 1)));
  }
  void append_text(const std::string& text) {
    append_bytes(std::as_bytes(std::span(text)));
  }
  void append_bytes(std::span<const std::byte> bytes) {
    chunk().insert(chunk().end(), bytes.begin(), bytes.end());
    chunk().resize((chunk().size() + 3) / 4 * 4);
  }

  const uint32_t flags_;
  std::vector<std::vector<std::byte>> chunks_;
  const ModuleSymbols* module_ = nullptr;
  size_t head_at_ = 0;
  arctrace_symbols_module head_{};
};

}  // namespace

bool StoredSymbols::add_untrusted(std::span<const std::byte> payload) {
  BodyReader reader(payload);
  const auto head = reader.read<arctrace_symbols>();
  is_partial_ |= (head.flags & ARCTRACE_SYMBOLS_PARTIAL) != 0;
  while (reader.ok() && !reader.rest().empty()) {
    const auto facts = reader.read<arctrace_symbols_module>();
    const std::span<const std::byte> build_id = reader.bytes(facts.build_id_size);
    const std::string path(reader.text(facts.path_size));
    if (!reader.ok()) return false;
    Module& module = modules_[key_of(path, build_id)];
    for (uint32_t i = 0; i < facts.functions; ++i) {
      const auto function = reader.read<arctrace_symbols_function>();
      const std::string_view name = reader.text(function.name_size);
      const std::string_view file = reader.text(function.file_size);
      if (!reader.ok()) return false;
      const auto [entry, is_new] = module.functions.try_emplace(function.address);
      if (!is_new) continue;
      entry->second = {function.start, std::string(name), std::string(file),
                       function.line};
      if (name == kAdaInit) module.ada_init = entry->second;
      ++functions_;
    }
    for (uint32_t i = 0; i < facts.exports; ++i) {
      const auto entry = reader.read<arctrace_symbols_export>();
      const std::string_view name = reader.text(entry.name_size);
      if (!reader.ok()) return false;
      module.exports.insert(std::string(name));
      exported_.insert(std::string(name));
    }
  }
  return reader.ok();
}

std::vector<std::vector<std::byte>> encode_symbols(std::span<const ModuleSymbols> modules,
                                                   uint32_t flags) {
  ChunkWriter writer(flags);
  for (const ModuleSymbols& module : modules) writer.add(module);
  return writer.finish();
}

}  // namespace arctrace::reader
