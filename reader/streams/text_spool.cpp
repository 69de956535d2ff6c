#include "reader/streams/text_spool.hpp"

namespace arctrace::reader {

uint64_t TextSpool::add(std::string_view text) {
  if (text.empty()) return 0;
  if (!recent_.empty() && recent_.size() + text.size() > bytes_in_memory_) {
    file_.write_at(on_disk_, recent_.data(), recent_.size());
    on_disk_ += recent_.size();
    recent_.clear();
  }
  recent_ += text;
  return on_disk_ + recent_.size() - text.size();
}

std::string TextSpool::read(uint64_t offset, size_t size) {
  if (offset >= on_disk_) {
    const uint64_t at = offset - on_disk_;
    return at > recent_.size() ? std::string() : recent_.substr(at, size);
  }
  std::string text(size, '\0');
  text.resize(file_.read_at(offset, text.data(), size));
  return text;
}

}  // namespace arctrace::reader
