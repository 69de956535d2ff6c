// arctrace/reader.hpp - read traces from C++20: owners and ranges over arctrace/reader.h,
// whose comments define meanings and costs. Header-only; link with -larctrace-reader
// (pkg-config arctrace-reader).
//
// Functions throw arctrace::reader::Error where those of reader.h fail, and
// std::bad_alloc. Objects are moved, not copied; what a trace hands out must not outlive
// it.
#ifndef ARCTRACE_READER_HPP
#define ARCTRACE_READER_HPP

#if __cplusplus < 202002L
#error \
    "arctrace/reader.hpp needs C++20: -std=c++20, in CMake target_compile_features(... cxx_std_20)"
#endif

#include <arctrace/reader.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace::reader {

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  // The error as enum arctrace_reader_status.
  int code() const { return code_; }

 private:
  int code_;
};

namespace detail {

inline void check(int result) {
  if (result != ARCTRACE_READER_OK) throw Error(result, arctrace_reader_error());
}

// A range of the items `get(owner, 0)`, `get(owner, 1)` ... up to the first nullptr.
template <class Item, class Get>
class Numbered {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using pointer = const Item*;
    using reference = const Item&;

    iterator() = default;
    iterator(const Get* get, std::size_t at) : get_(get), at_(at) { find(); }
    reference operator*() const { return *item_; }
    pointer operator->() const { return item_; }
    iterator& operator++() {
      ++at_;
      find();
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) {
      return a.item_ == b.item_;
    }

   private:
    void find() { item_ = (*get_)(at_); }

    const Get* get_ = nullptr;
    std::size_t at_ = 0;
    const Item* item_ = nullptr;
  };

  explicit Numbered(Get get) : get_(std::move(get)) {}
  iterator begin() const { return iterator(&get_, 0); }
  iterator end() const { return iterator(); }
  // Throws std::out_of_range if there is no such item.
  const Item& operator[](std::size_t number) const {
    const Item* item = get_(number);
    if (item == nullptr) throw std::out_of_range("arctrace: there is no such number");
    return *item;
  }

 private:
  Get get_;
};

template <class Item, class Get>
Numbered<Item, Get> numbered(Get get) {
  return Numbered<Item, Get>(std::move(get));
}

// An input iterator over the items that a cursor hands out.
template <class Item, class Cursor>
class CursorIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Item;
  using difference_type = std::ptrdiff_t;
  using pointer = const Item*;
  using reference = const Item&;

  CursorIterator() = default;
  explicit CursorIterator(Cursor* cursor) : cursor_(cursor), item_(cursor->next()) {}
  reference operator*() const { return *item_; }
  pointer operator->() const { return item_; }
  CursorIterator& operator++() {
    item_ = cursor_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const CursorIterator& a, std::default_sentinel_t) {
    return a.item_ == nullptr;
  }

 private:
  Cursor* cursor_ = nullptr;
  const Item* item_ = nullptr;
};

struct Delete {
  void operator()(arctrace_reader_trace* trace) const { arctrace_reader_close(trace); }
  void operator()(arctrace_reader_calls* calls) const {
    arctrace_reader_calls_close(calls);
  }
  void operator()(arctrace_reader_records* records) const {
    arctrace_reader_records_close(records);
  }
  void operator()(arctrace_reader_profile* profile) const {
    arctrace_reader_profile_free(profile);
  }
};

}  // namespace detail

// The limits of calls and profiles: struct arctrace_reader_filter.
struct Filter {
  std::int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
  std::uint64_t min_duration_ns = 0;
  std::uint32_t max_depth = UINT32_MAX;
  std::vector<std::string> only, except;
};

namespace detail {

// A filter in its C form, which lives as long as this object and `from`.
class CFilter {
 public:
  explicit CFilter(const Filter& from) {
    only_.reserve(from.only.size());
    except_.reserve(from.except.size());
    for (const std::string& glob : from.only) only_.push_back(glob.c_str());
    for (const std::string& glob : from.except) except_.push_back(glob.c_str());
    filter_.from_ns = from.from_ns;
    filter_.until_ns = from.until_ns;
    filter_.min_duration_ns = from.min_duration_ns;
    filter_.max_depth = from.max_depth;
    filter_.only = only_.data();
    filter_.only_count = only_.size();
    filter_.except = except_.data();
    filter_.except_count = except_.size();
  }
  const arctrace_reader_filter* get() const { return &filter_; }

 private:
  std::vector<const char*> only_, except_;
  arctrace_reader_filter filter_ = ARCTRACE_READER_FILTER;
};

}  // namespace detail

// The calls of a trace, as an input range of arctrace_reader_call, in one pass. An item
// is valid until the next one is asked for.
class Calls {
 public:
  explicit Calls(arctrace_reader_calls* calls) : calls_(calls) {}

  // Returns nullptr after the last call.
  const arctrace_reader_call* next() {
    const arctrace_reader_call* call = nullptr;
    detail::check(arctrace_reader_calls_next(calls_.get(), &call));
    return call;
  }
  // Returns how many calls it put into the columns: 0 after the last one.
  std::size_t columns(const arctrace_reader_columns& columns) {
    std::size_t count = 0;
    detail::check(arctrace_reader_calls_columns(calls_.get(), &columns, &count));
    return count;
  }

  auto begin() { return detail::CursorIterator<arctrace_reader_call, Calls>(this); }
  std::default_sentinel_t end() const { return {}; }

  std::string_view name(std::uint32_t function) const { return found(function).name; }
  std::string_view module(std::uint32_t function) const { return found(function).module; }
  std::size_t functions() const { return arctrace_reader_calls_functions(calls_.get()); }
  std::size_t paths() const { return arctrace_reader_calls_paths(calls_.get()); }

  // The functions of a path, innermost first.
  std::vector<std::uint32_t> functions_of(std::uint32_t path) const {
    std::vector<std::uint32_t> functions;
    while (path != ARCTRACE_READER_NONE) functions.push_back(step(path));
    return functions;
  }
  // The function that called, or ARCTRACE_READER_NONE if none did.
  std::uint32_t caller(const arctrace_reader_call& call) const {
    std::uint32_t path = call.path;
    step(path);
    return path == ARCTRACE_READER_NONE ? path : step(path);
  }

 private:
  const arctrace_reader_function& found(std::uint32_t function) const {
    const arctrace_reader_function* item =
        arctrace_reader_calls_function(calls_.get(), function);
    if (item == nullptr) throw std::out_of_range("arctrace: there is no such function");
    return *item;
  }
  // Goes from `path` to the path around it. Returns the function at its end.
  std::uint32_t step(std::uint32_t& path) const {
    std::uint32_t parent = 0, function = 0;
    detail::check(arctrace_reader_calls_path(calls_.get(), path, &parent, &function));
    path = parent;
    return function;
  }

  std::unique_ptr<arctrace_reader_calls, detail::Delete> calls_;
};

// The records of a trace, as an input range of arctrace_reader_record, in one pass.
class Records {
 public:
  explicit Records(arctrace_reader_records* records) : records_(records) {}

  // Returns nullptr after the last record.
  const arctrace_reader_record* next() {
    const arctrace_reader_record* record = nullptr;
    detail::check(arctrace_reader_records_next(records_.get(), &record));
    return record;
  }
  auto begin() { return detail::CursorIterator<arctrace_reader_record, Records>(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::unique_ptr<arctrace_reader_records, detail::Delete> records_;
};

// Sums of the calls of a trace. The object does not need the trace any more.
class Profile {
 public:
  explicit Profile(arctrace_reader_profile* profile) : profile_(profile) {}

  auto groups() const {
    return detail::numbered<arctrace_reader_group>([p = profile_.get()](std::size_t i) {
      return arctrace_reader_profile_group(p, i);
    });
  }
  auto functions(std::size_t group = 0) const {
    return detail::numbered<arctrace_reader_function_sums>(
        [p = profile_.get(), group](std::size_t i) {
          return arctrace_reader_profile_function(p, group, i);
        });
  }
  auto nodes(std::size_t group = 0) const {
    return detail::numbered<arctrace_reader_node>(
        [p = profile_.get(), group](std::size_t i) {
          return arctrace_reader_profile_node(p, group, i);
        });
  }
  auto missing() const {
    return detail::numbered<arctrace_reader_missing>([p = profile_.get()](std::size_t i) {
      return arctrace_reader_profile_missing(p, i);
    });
  }

 private:
  std::unique_ptr<arctrace_reader_profile, detail::Delete> profile_;
};

class Trace {
 public:
  // `flags`: enum arctrace_reader_open_flag.
  explicit Trace(const std::string& path, std::uint32_t flags = 0)
      : Trace(std::vector<std::string>{path}, flags) {}
  // Opens the files of one recording.
  explicit Trace(const std::vector<std::string>& paths, std::uint32_t flags = 0) {
    std::vector<const char*> names;
    names.reserve(paths.size());
    for (const std::string& path : paths) names.push_back(path.c_str());
    arctrace_reader_trace* trace = nullptr;
    detail::check(arctrace_reader_open(names.data(), names.size(), flags, &trace));
    trace_.reset(trace);
  }

  const arctrace_reader_facts& facts() const {
    return *arctrace_reader_get_facts(trace_.get());
  }
  auto processes() const {
    return detail::numbered<arctrace_reader_process>(
        [t = trace_.get()](std::size_t i) { return arctrace_reader_get_process(t, i); });
  }
  auto threads() const {
    return detail::numbered<arctrace_reader_thread>(
        [t = trace_.get()](std::size_t i) { return arctrace_reader_get_thread(t, i); });
  }
  auto findings() const {
    return detail::numbered<arctrace_reader_finding>(
        [t = trace_.get()](std::size_t i) { return arctrace_reader_get_finding(t, i); });
  }

  void scan() { detail::check(arctrace_reader_scan(trace_.get())); }

  // `flags`: enum arctrace_reader_calls_flag.
  Calls calls(const Filter& filter = {}, std::uint32_t flags = 0) {
    const detail::CFilter shown(filter);
    arctrace_reader_calls* calls = nullptr;
    detail::check(arctrace_reader_calls_open(trace_.get(), shown.get(), flags, &calls));
    return Calls(calls);
  }
  // `flags`: enum arctrace_reader_records_flag.
  Records records(std::uint32_t flags = 0, std::int64_t from_ns = INT64_MIN,
                  std::int64_t until_ns = INT64_MAX) {
    arctrace_reader_records* records = nullptr;
    detail::check(
        arctrace_reader_records_open(trace_.get(), from_ns, until_ns, flags, &records));
    return Records(records);
  }
  Profile profile(const Filter& filter = {},
                  arctrace_reader_grouping grouping = ARCTRACE_READER_ALL) {
    const detail::CFilter shown(filter);
    arctrace_reader_profile* profile = nullptr;
    detail::check(
        arctrace_reader_profile_make(trace_.get(), shown.get(), grouping, &profile));
    return Profile(profile);
  }

 private:
  std::unique_ptr<arctrace_reader_trace, detail::Delete> trace_;
};

}  // namespace arctrace::reader

#endif
