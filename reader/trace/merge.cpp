#include "reader/trace/merge.hpp"

#include <algorithm>
#include <utility>

namespace arctrace::reader {
namespace {

// A binary min-heap of sources. The key is kept beside the pointer, so that a comparison
// does not fetch the source itself.
class SourceHeap {
 public:
  struct Entry {
    uint64_t key;
    uint64_t order;
    std::unique_ptr<RecordSource> source;

    bool before(const Entry& other) const {
      return key != other.key ? key < other.key : order < other.order;
    }
  };

  explicit SourceHeap(std::vector<std::unique_ptr<RecordSource>> sources) {
    entries_.reserve(sources.size());
    for (auto& source : sources) {
      const uint64_t key = source->key();
      const uint64_t order = source->order();
      entries_.push_back({key, order, std::move(source)});
    }
    for (size_t i = entries_.size() / 2; i-- > 0;) sink(i);
  }

  bool empty() const { return entries_.empty(); }
  Entry& top() { return entries_.front(); }

  // The best one but the top, or nullptr.
  const Entry* second() const {
    if (entries_.size() < 2) return nullptr;
    if (entries_.size() == 2 || entries_[1].before(entries_[2])) return &entries_[1];
    return &entries_[2];
  }

  // Restores the heap after the key of the top has changed.
  void top_changed() {
    entries_.front().key = entries_.front().source->key();
    sink(0);
  }
  void remove_top() {
    std::swap(entries_.front(), entries_.back());
    entries_.pop_back();
    if (!entries_.empty()) sink(0);
  }

 private:
  void sink(size_t at) {
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= entries_.size()) return;
      if (child + 1 < entries_.size() && entries_[child + 1].before(entries_[child])) {
        ++child;
      }
      if (!entries_[child].before(entries_[at])) return;
      std::swap(entries_[at], entries_[child]);
      at = child;
    }
  }

  std::vector<Entry> entries_;
};

}  // namespace

absl::Status merge(std::vector<std::unique_ptr<RecordSource>> sources, Emitter& emitter) {
  SourceHeap heap(std::move(sources));
  while (!heap.empty()) {
    const SourceHeap::Entry* second = heap.second();
    const uint64_t limit = second == nullptr ? UINT64_MAX : second->key;
    const bool limit_first = second != nullptr && second->order < heap.top().order;
    const absl::StatusOr<RecordSource::Result> result =
        heap.top().source->drain(limit, limit_first, emitter);
    if (!result.ok()) return result.status();
    switch (*result) {
      case RecordSource::Result::kMore:
        heap.top_changed();
        break;
      case RecordSource::Result::kEnd:
        heap.remove_top();
        break;
      case RecordSource::Result::kStopped:
        return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace arctrace::reader
