#include "src/recorder/file/kept_files.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

namespace arctrace {

std::string KeptFiles::next_name() const { return absl::StrCat(output_, ".", ever_ + 1); }

void KeptFiles::add(uint64_t bytes, uint64_t more, FileEnd end) {
  files_.push_back({next_name(), bytes, end});
  bytes_ += bytes;
  ++ever_;
  const auto too_many = [&] {
    return (limits_.files != 0 && files_.size() > limits_.files) ||
           (limits_.bytes != 0 && bytes_ + more > limits_.bytes);
  };
  while (files_.size() > 1 && too_many()) drop_oldest();
}

bool KeptFiles::drop_oldest() {
  if (files_.empty()) return false;
  const File& oldest = files_.front();
  unlink(oldest.name.c_str());
  removed_ = {removed_.files + 1, oldest.end.records, oldest.end.kernel,
              oldest.end.ticks};
  bytes_ -= oldest.bytes;
  files_.pop_front();
  return true;
}

}  // namespace arctrace
