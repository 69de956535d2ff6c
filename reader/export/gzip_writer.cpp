#include "reader/export/gzip_writer.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace arctrace::reader {
namespace {

constexpr size_t kOutSize = size_t{64} << 10;
constexpr int kWindowOfGzip = 15 + 16;
constexpr int kMemoryLevel = 8;

}  // namespace

GzipWriter::GzipWriter(const WriteText& write) : write_(write), out_(kOutSize, '\0') {
  // deflateInit2() fails only for lack of memory.
  if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowOfGzip,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

GzipWriter::~GzipWriter() { deflateEnd(&stream_); }

bool GzipWriter::add(std::string_view text) {
  while (good_ && !text.empty()) {
    const size_t piece = std::min<size_t>(text.size(), std::numeric_limits<uInt>::max());
    // zlib does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(piece);
    good_ = compress(Z_NO_FLUSH);
    text.remove_prefix(piece);
  }
  return good_;
}

bool GzipWriter::finish() {
  stream_.next_in = nullptr;
  stream_.avail_in = 0;
  return good_ = good_ && compress(Z_FINISH);
}

bool GzipWriter::compress(int flush) {
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    deflate(&stream_, flush);
    const size_t made = out_.size() - stream_.avail_out;
    if (made != 0 && !write_(std::string_view(out_.data(), made))) return false;
  } while (stream_.avail_out == 0);
  return true;
}

}  // namespace arctrace::reader
