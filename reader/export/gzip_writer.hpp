// Compresses what is written, as gzip does.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

class GzipWriter {
 public:
  // `write` must outlive this object.
  explicit GzipWriter(const WriteText& write);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Returns false once the receiver wants no more.
  bool add(std::string_view text);
  // To be called once, last.
  bool finish();

 private:
  bool compress(int flush);

  const WriteText& write_;
  z_stream stream_{};
  std::string out_;
  bool good_ = true;
};

}  // namespace arctrace::reader
