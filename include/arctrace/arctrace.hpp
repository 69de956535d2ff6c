// arctrace/arctrace.hpp - C++20 on top of arctrace.h: scopes, typed events, and macros
// that define names where they are used.
//
//   using RequestDone = arctrace::Event<"request_done",
//                                       arctrace::Field<"id", uint64_t>,
//                                       arctrace::Field<"path", std::string_view>>;
//
//   void serve(const Request& request) {
//     ARCTRACE_SCOPE("serve");
//     ...
//     ARCTRACE_WRITE(RequestDone, request.id, request.path);
//   }
//
// Threads, signal handlers, losses and costs are as in arctrace.h, to which everything
// here forwards. While a class of records is switched off, without a session and after
// arguments. Nothing throws. With -finstrument-functions nothing in this header becomes a
// frame of its own; for that reason it uses little of the standard library.
#ifndef ARCTRACE_ARCTRACE_HPP
#define ARCTRACE_ARCTRACE_HPP

#if __cplusplus < 202002L
#error \
    "arctrace/arctrace.hpp needs C++20: -std=c++20, in CMake target_compile_features(... cxx_std_20)"
#endif

#include <arctrace/arctrace.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace arctrace {

// A string literal as a template argument.
template <size_t N>
struct Text {
  // NOLINTNEXTLINE(google-explicit-constructor): "name" must convert by itself.
  constexpr Text(const char (&text)[N]) {
    for (size_t i = 0; i < N; ++i) value[i] = text[i];
  }
  char value[N];
};

namespace internal {

// An id in this process, made at its first use by make(). If make() returns 0, the next
// use calls it again. Two threads may both make an id at the first use, which does no
// harm.
class Id {
 public:
  template <class Make>
  ARCTRACE_UNTRACED uint32_t get(const Make& make) {
    uint32_t id = __atomic_load_n(&id_, __ATOMIC_RELAXED);
    if (id == 0) [[unlikely]] {
      id = make();
      __atomic_store_n(&id_, id, __ATOMIC_RELAXED);
    }
    return id;
  }

 private:
  uint32_t id_ = 0;
};

}  // namespace internal

// A name for scopes, instants and counters, defined at its first use. Its constructor is
// constexpr, so that a static Name needs no initialization at run time. `text` must
// outlive it; the first 1024 bytes count.
class Name {
 public:
  constexpr explicit Name(const char* text) : text_(text) {}

  // The name's id in this process (arctrace_define_name), 0 if there is no memory.
  ARCTRACE_UNTRACED uint32_t id() {
    return id_.get([this]() ARCTRACE_UNTRACED { return arctrace_define_name(text_); });
  }

 private:
  const char* text_;
  internal::Id id_;
};

// Enters a frame named by `name` and leaves it at the end of the scope, also when an
// exception leaves it. If functions are not recorded at its begin, nothing is recorded at
// its end. Class FUNCTIONS; at most 95 instructions for both records.
class Scope {
 public:
  ARCTRACE_UNTRACED explicit Scope(Name& name) {
    if (arctrace_enabled(ARCTRACE_GATE_FUNCTIONS)) {
      key_ = arctrace_name_key(name.id());
      arctrace_enter(key_);
    }
  }
  ARCTRACE_UNTRACED ~Scope() {
    if (key_ != 0) arctrace_exit(key_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  uint64_t key_ = 0;  // 0: functions were switched off at entry
};

// Strings in payloads are cut to this many bytes.
inline constexpr size_t kStringMax = 1024;

// The enum arctrace_field_type of a C++ type: a bool, integer, enum, float, double,
// pointer or std::string_view.
template <class T>
ARCTRACE_UNTRACED constexpr uint32_t field_type() {
  if constexpr (std::same_as<T, bool>) {
    return ARCTRACE_FIELD_BOOL;
  } else if constexpr (std::integral<T> || std::is_enum_v<T>) {
    constexpr bool is_signed = [] {
      if constexpr (std::is_enum_v<T>) {
        return std::is_signed_v<std::underlying_type_t<T>>;
      } else {
        return std::is_signed_v<T>;
      }
    }();
    constexpr uint32_t first = is_signed ? ARCTRACE_FIELD_I8 : ARCTRACE_FIELD_U8;
    constexpr uint32_t log2 = sizeof(T) == 1   ? 0
                              : sizeof(T) == 2 ? 1
                              : sizeof(T) == 4 ? 2
                                               : 3;
    return first + log2;
  } else if constexpr (std::same_as<T, float>) {
    return ARCTRACE_FIELD_F32;
  } else if constexpr (std::same_as<T, double>) {
    return ARCTRACE_FIELD_F64;
  } else if constexpr (std::same_as<T, std::string_view>) {
    return ARCTRACE_FIELD_STRING;
  } else {
    static_assert(std::is_pointer_v<T>,
                  "a field is a number, an enum, a pointer or a std::string_view");
    return ARCTRACE_FIELD_X64;
  }
}

// A field of an Event: its name and its type, one of those of field_type().
template <Text kName, class T>
struct Field {
  using Type = T;
  ARCTRACE_UNTRACED static constexpr const char* name() { return kName.value; }
};

// The level of an Event, 0 most important to 7 finest, written before its fields:
//   using Row = arctrace::Event<"row", arctrace::Level<5>, arctrace::Field<"n", int>>;
// A session can be told to record events up to a level only (arctrace record --level).
template <uint32_t kNumber>
struct Level {};

namespace internal {

// The implementation of Event, with the level apart from the fields.
template <Text kName, uint32_t kLevel, class... Fields>
class LeveledEvent {
  static_assert(kLevel <= 7, "a level is a number from 0 to 7");

 public:
  // Makes ARCTRACE_WRITE refuse narrowing conversions, by brace initialization.
  struct Call {
    ARCTRACE_UNTRACED explicit Call(typename Fields::Type... values) { write(values...); }
  };

  // Records the event with one value for each field, in order. Class EVENTS; at
  // most 46 instructions for a number. Unlike ARCTRACE_WRITE it evaluates its arguments
  // in any case, and converts them implicitly. The payload is built on the stack and
  // takes up to kStringMax bytes for each string.
  ARCTRACE_UNTRACED static void write(typename Fields::Type... values) {
    static_assert(kFixedSize + kStrings * kStringMax <= ARCTRACE_PAYLOAD_MAX,
                  "the payload may be longer than a record");
    std::byte payload[kFixedSize + kStrings * kStringMax + 1];
    std::byte* end = payload;
    ((end = store(end, values)), ...);
    arctrace_write(id(), payload, static_cast<size_t>(end - payload));
  }

  // The event's id in this process (arctrace_define_event), 0 if it can't be defined.
  ARCTRACE_UNTRACED static uint32_t id() {
    return id_.get([]() ARCTRACE_UNTRACED {
      const arctrace_field fields[] = {
          {Fields::name(), field_type<typename Fields::Type>()}..., {nullptr, 0}};
      return arctrace_define_event(kName.value, kLevel, fields, sizeof...(Fields));
    });
  }

 private:
  template <class T>
  static constexpr bool is_string = std::same_as<T, std::string_view>;
  static constexpr size_t kStrings = (size_t{is_string<typename Fields::Type>} + ... + 0);
  static constexpr size_t kFixedSize =
      ((is_string<typename Fields::Type> ? size_t{4} : sizeof(typename Fields::Type)) +
       ... + 0);

  template <class T>
  ARCTRACE_UNTRACED static std::byte* store(std::byte* to, const T& value) {
    if constexpr (is_string<T>) {
      const size_t size = value.size();
      const auto n = static_cast<uint32_t>(size < kStringMax ? size : kStringMax);
      std::memcpy(to, &n, sizeof n);
      if (n != 0) std::memcpy(to + sizeof n, value.data(), n);
      return to + sizeof n + n;
    } else {
      std::memcpy(to, &value, sizeof value);
      return to + sizeof value;
    }
  }

  static inline constinit Id id_;
};

}  // namespace internal

// An event with typed fields, at most 64, defined at its first use. Its level is 0, or
// that of a Level before the fields. An event whose strings could make it longer than
// ARCTRACE_PAYLOAD_MAX does not compile. Its functions are those of LeveledEvent.
template <Text kName, class... Fields>
class Event : public internal::LeveledEvent<kName, 0, Fields...> {};
template <Text kName, uint32_t kLevel, class... Fields>
class Event<kName, Level<kLevel>, Fields...>
    : public internal::LeveledEvent<kName, kLevel, Fields...> {};

}  // namespace arctrace

#define ARCTRACE_SCOPE_(name, number)                             \
  static constinit ::arctrace::Name arctrace_name_##number{name}; \
  const ::arctrace::Scope arctrace_scope_##number { arctrace_name_##number }
#define ARCTRACE_SCOPE_NUMBERED_(name, number) ARCTRACE_SCOPE_(name, number)

// Enters a frame here and leaves it at the end of the enclosing block (class Scope).
// `name` is a constant text, such as a literal; ARCTRACE_FUNCTION() uses the function's.
#define ARCTRACE_SCOPE(name) ARCTRACE_SCOPE_NUMBERED_(name, __COUNTER__)
#define ARCTRACE_FUNCTION() ARCTRACE_SCOPE(__func__)

// Records an event: ARCTRACE_WRITE(EventType, value...), with one value for each field.
// Values that would have to be narrowed do not compile. Class EVENTS.
#define ARCTRACE_WRITE(event, ...)                \
  do {                                            \
    if (arctrace_enabled(ARCTRACE_GATE_EVENTS)) { \
      (void)typename event::Call{__VA_ARGS__};    \
    }                                             \
  } while (false)

// Records a point in time with a name. `name` is a constant text, defined at its first
// use.
// Class MARKS, as for the next three.
#define ARCTRACE_INSTANT(name)                             \
  do {                                                     \
    if (arctrace_enabled(ARCTRACE_GATE_MARKS)) {           \
      static constinit ::arctrace::Name arctrace_id{name}; \
      arctrace_instant(arctrace_id.id());                  \
    }                                                      \
  } while (false)

// Records the value, an int64_t, of the counter `name`, a constant text.
#define ARCTRACE_COUNTER(name, value)                      \
  do {                                                     \
    if (arctrace_enabled(ARCTRACE_GATE_MARKS)) {           \
      static constinit ::arctrace::Name arctrace_id{name}; \
      arctrace_counter(arctrace_id.id(), (value));         \
    }                                                      \
  } while (false)

// Records a line formatted as by printf: ARCTRACE_TEXT(format, value...) (arctrace_text).
#define ARCTRACE_TEXT(...)                                                 \
  do {                                                                     \
    if (arctrace_enabled(ARCTRACE_GATE_MARKS)) arctrace_text(__VA_ARGS__); \
  } while (false)

// Records a mark on the time line of the whole session (arctrace_mark).
#define ARCTRACE_MARK(text)                                         \
  do {                                                              \
    if (arctrace_enabled(ARCTRACE_GATE_MARKS)) arctrace_mark(text); \
  } while (false)

#endif  // ARCTRACE_ARCTRACE_HPP
