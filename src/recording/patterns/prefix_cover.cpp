#include "src/recording/patterns/prefix_cover.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace arctrace::recording {
namespace {

class Cover {
 public:
  explicit Cover(const std::vector<CoveredName>& names)
      : names_(names),
        wanted_before_(names.size() + 1),
        forbidden_before_(wanted_before_) {
    for (size_t i = 0; i < names.size(); ++i) {
      wanted_before_[i + 1] =
          wanted_before_[i] + (names[i].coverage == Coverage::kWanted ? 1 : 0);
      forbidden_before_[i + 1] =
          forbidden_before_[i] + (names[i].coverage == Coverage::kForbidden ? 1 : 0);
    }
  }

  // Covers names_[begin, end), which have a prefix of `length` bytes that no other name
  // has.
  void add(size_t begin, size_t end, size_t length) {
    if (wanted_before_[begin] == wanted_before_[end]) return;
    const std::string_view first = names_[begin].name;
    if (end - begin == 1) {
      globs_.push_back(exactly(first));
      return;
    }
    if (forbidden_before_[begin] == forbidden_before_[end]) {
      globs_.push_back(exactly(first.substr(0, length)) + "*");
      return;
    }
    const std::string_view last = names_[end - 1].name;
    const auto differ =
        std::mismatch(first.begin(), first.end(), last.begin(), last.end());
    const auto common = static_cast<size_t>(differ.first - first.begin());
    size_t i = begin;
    if (first.size() == common) {
      add(begin, begin + 1, common);
      ++i;
    }
    while (i < end) {
      size_t next = i + 1;
      while (next < end && names_[next].name[common] == names_[i].name[common]) ++next;
      add(i, next, common + 1);
      i = next;
    }
  }

  std::vector<std::string> take() { return std::move(globs_); }

 private:
  const std::vector<CoveredName>& names_;
  std::vector<size_t> wanted_before_, forbidden_before_;
  std::vector<std::string> globs_;
};

}  // namespace

std::string exactly(std::string_view name) {
  std::string glob;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

std::vector<std::string> prefix_cover(const std::vector<CoveredName>& names) {
  Cover cover(names);
  if (!names.empty()) cover.add(0, names.size(), 0);
  return cover.take();
}

}  // namespace arctrace::recording
