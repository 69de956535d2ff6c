#include "reader/trace/call_args.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "reader/trace/bytes.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

struct Word {
  uint64_t number;
  const char* text;
};

constexpr Word kAccessModes[] = {
    {O_RDONLY, "O_RDONLY"}, {O_WRONLY, "O_WRONLY"}, {O_RDWR, "O_RDWR"}};
// Those that are more than one bit first.
constexpr Word kOpenFlags[] = {
    {O_TMPFILE, "O_TMPFILE"},     {O_SYNC, "O_SYNC"},         {O_CREAT, "O_CREAT"},
    {O_EXCL, "O_EXCL"},           {O_NOCTTY, "O_NOCTTY"},     {O_TRUNC, "O_TRUNC"},
    {O_APPEND, "O_APPEND"},       {O_NONBLOCK, "O_NONBLOCK"}, {O_DSYNC, "O_DSYNC"},
    {O_ASYNC, "O_ASYNC"},         {O_DIRECT, "O_DIRECT"},     {0100000, "O_LARGEFILE"},
    {O_DIRECTORY, "O_DIRECTORY"}, {O_NOFOLLOW, "O_NOFOLLOW"}, {O_NOATIME, "O_NOATIME"},
    {O_CLOEXEC, "O_CLOEXEC"},     {O_PATH, "O_PATH"}};
constexpr Word kAccess[] = {{R_OK, "R_OK"}, {W_OK, "W_OK"}, {X_OK, "X_OK"}};
constexpr Word kProtections[] = {
    {PROT_READ, "PROT_READ"}, {PROT_WRITE, "PROT_WRITE"}, {PROT_EXEC, "PROT_EXEC"}};
constexpr Word kMapFlags[] = {{MAP_SHARED_VALIDATE, "MAP_SHARED_VALIDATE"},
                              {MAP_SHARED, "MAP_SHARED"},
                              {MAP_PRIVATE, "MAP_PRIVATE"},
                              {MAP_FIXED, "MAP_FIXED"},
                              {MAP_ANONYMOUS, "MAP_ANONYMOUS"},
                              {MAP_GROWSDOWN, "MAP_GROWSDOWN"},
                              {MAP_LOCKED, "MAP_LOCKED"},
                              {MAP_NORESERVE, "MAP_NORESERVE"},
                              {MAP_POPULATE, "MAP_POPULATE"},
                              {MAP_STACK, "MAP_STACK"},
                              {MAP_HUGETLB, "MAP_HUGETLB"},
                              {MAP_FIXED_NOREPLACE, "MAP_FIXED_NOREPLACE"}};
constexpr Word kWhences[] = {{SEEK_SET, "SEEK_SET"},
                             {SEEK_CUR, "SEEK_CUR"},
                             {SEEK_END, "SEEK_END"},
                             {SEEK_DATA, "SEEK_DATA"},
                             {SEEK_HOLE, "SEEK_HOLE"}};
constexpr Word kDomains[] = {{AF_UNSPEC, "AF_UNSPEC"},   {AF_UNIX, "AF_UNIX"},
                             {AF_INET, "AF_INET"},       {AF_INET6, "AF_INET6"},
                             {AF_NETLINK, "AF_NETLINK"}, {AF_PACKET, "AF_PACKET"}};
constexpr Word kSockets[] = {{SOCK_STREAM, "SOCK_STREAM"},
                             {SOCK_DGRAM, "SOCK_DGRAM"},
                             {SOCK_RAW, "SOCK_RAW"},
                             {SOCK_SEQPACKET, "SOCK_SEQPACKET"}};
constexpr Word kSocketFlags[] = {{SOCK_CLOEXEC, "SOCK_CLOEXEC"},
                                 {SOCK_NONBLOCK, "SOCK_NONBLOCK"}};
constexpr Word kClocks[] = {
    {0, "CLOCK_REALTIME"},           {1, "CLOCK_MONOTONIC"},
    {2, "CLOCK_PROCESS_CPUTIME_ID"}, {3, "CLOCK_THREAD_CPUTIME_ID"},
    {4, "CLOCK_MONOTONIC_RAW"},      {5, "CLOCK_REALTIME_COARSE"},
    {6, "CLOCK_MONOTONIC_COARSE"},   {7, "CLOCK_BOOTTIME"}};

template <size_t n>
std::string word_of(uint64_t number, const Word (&words)[n]) {
  for (const Word& word : words) {
    if (word.number == number) return word.text;
  }
  return {};
}

// Bits without a name in hex behind the others.
template <size_t n>
std::string flags_of(uint64_t bits, const Word (&words)[n], std::string text = {}) {
  const auto add = [&text](const std::string& word) {
    text += text.empty() ? "" : "|";
    text += word;
  };
  for (const Word& word : words) {
    if ((bits & word.number) != word.number) continue;
    add(word.text);
    bits &= ~word.number;
  }
  if (bits != 0) add(absl::StrCat("0x", absl::Hex(bits)));
  return text;
}

std::string open_flags(uint64_t flags) {
  return flags_of(flags & ~uint64_t{O_ACCMODE}, kOpenFlags,
                  word_of(flags & O_ACCMODE, kAccessModes));
}

std::string socket_type(uint64_t type) {
  const uint64_t flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK);
  const std::string word = word_of(type & ~flags, kSockets);
  return word.empty() ? word : flags_of(flags, kSocketFlags, word);
}

std::string signal_word(int64_t number) {
  const char* name =
      number > 0 && number < 65 ? ::sigabbrev_np(static_cast<int>(number)) : nullptr;
  return name == nullptr ? std::string() : absl::StrCat("SIG", name);
}

// Calls visit(head, bytes) for each value, names too.
template <class Visit>
void for_each_value(std::span<const std::byte> body, const Visit& visit) {
  BodyReader reader(body);
  const uint32_t count = reader.u32();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const uint32_t head = reader.u32();
    const std::span<const std::byte> bytes = reader.padded(head >> 16);
    if (reader.ok()) visit(head, bytes);
  }
}

CallValue decode(uint32_t head, std::span<const std::byte> bytes) {
  CallValue value;
  value.kind = head & 0xFF;
  value.argument = head >> 8 & 0xFF;
  if (!is_number_kind(value.kind)) {
    value.bytes = as_text(bytes);
    return value;
  }
  for (size_t i = bytes.size(); i-- > 0;) {
    value.number = value.number << 8 | uint64_t(bytes[i]);
  }
  value.size = static_cast<uint32_t>(bytes.size());
  const size_t unused = 64 - 8 * bytes.size();
  value.signed_number = static_cast<int64_t>(value.number << unused) >> unused;
  return value;
}

// What stands before the first `separator` in `text`, which goes on behind it.
std::string_view cut_off(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// The enumerator, or several that are one bit each; empty: there are none for all bits.
std::string enumerator_of(const CallValue& value) {
  const int64_t number = value.kind == ARCTRACE_VALUE_SIGNED
                             ? value.signed_number
                             : static_cast<int64_t>(value.number);
  std::string flags;
  uint64_t bits = value.number;
  for (std::string_view words = value.words; !words.empty();) {
    const std::string_view word = cut_off(words, '/');
    const size_t sign = word.find('=');
    int64_t found = 0;
    if (sign == std::string_view::npos ||
        std::from_chars(word.data(), word.data() + sign, found).ec != std::errc()) {
      continue;
    }
    std::string name = escaped(word.substr(sign + 1));
    if (found == number) return name;
    const auto bit = static_cast<uint64_t>(found);
    if (!std::has_single_bit(bit) || (bits & bit) == 0) continue;
    bits &= ~bit;
    absl::StrAppend(&flags, flags.empty() ? "" : "|", name);
  }
  return bits == 0 ? flags : "";
}

std::string hex_bytes(std::string_view bytes) {
  std::string text = "0x";
  for (const char byte : bytes) {
    absl::StrAppendFormat(&text, "%02x", static_cast<unsigned char>(byte));
  }
  return text;
}

std::string character(uint64_t code) {
  const char c = static_cast<char>(code);
  return c == '\'' ? "'\\''" : absl::StrCat("'", escaped({&c, 1}), "'");
}

}  // namespace

std::vector<CallValue> decode_values(std::span<const std::byte> body,
                                     std::string_view names) {
  std::vector<CallValue> values;
  for_each_value(body, [&values](uint32_t head, std::span<const std::byte> bytes) {
    CallValue value = decode(head, bytes);
    if (value.kind != ARCTRACE_VALUE_NAMES) values.push_back(value);
  });
  const auto commas = static_cast<size_t>(std::count(names.begin(), names.end(), ','));
  if (names.empty() || commas + 1 != values.size()) return values;
  for (CallValue& value : values) {
    const std::string_view own = cut_off(names, ',');
    value.words = own;
    value.name = cut_off(value.words, '/');
  }
  return values;
}

std::optional<uint32_t> names_of_values(std::span<const std::byte> body) {
  std::optional<uint32_t> id;
  for_each_value(body, [&id](uint32_t head, std::span<const std::byte> bytes) {
    const CallValue value = decode(head, bytes);
    if (value.kind == ARCTRACE_VALUE_NAMES) id = static_cast<uint32_t>(value.number);
  });
  return id;
}

std::string float_digits(const CallValue& value) {
  std::array<char, 32> digits{};
  std::to_chars_result end{};
  if (value.size == 4) {
    const auto real = std::bit_cast<float>(static_cast<uint32_t>(value.number));
    end = std::to_chars(digits.begin(), digits.end(), real);
  } else {
    end =
        std::to_chars(digits.begin(), digits.end(), std::bit_cast<double>(value.number));
  }
  return {digits.begin(), end.ptr};
}

std::string value_word(const CallValue& value) {
  switch (value.kind) {
    case ARCTRACE_VALUE_FOLDER:
      return value.signed_number == AT_FDCWD ? "AT_FDCWD" : "";
    case ARCTRACE_VALUE_OPEN_FLAGS:
      return open_flags(value.number);
    case ARCTRACE_VALUE_ACCESS:
      return value.number == 0 ? "F_OK" : flags_of(value.number, kAccess);
    case ARCTRACE_VALUE_PROTECTION:
      return value.number == 0 ? "PROT_NONE" : flags_of(value.number, kProtections);
    case ARCTRACE_VALUE_MAP_FLAGS:
      return flags_of(value.number, kMapFlags);
    case ARCTRACE_VALUE_WHENCE:
      return word_of(value.number, kWhences);
    case ARCTRACE_VALUE_DOMAIN:
      return word_of(value.number, kDomains);
    case ARCTRACE_VALUE_SOCKET:
      return socket_type(value.number);
    case ARCTRACE_VALUE_SIGNAL:
      return signal_word(value.signed_number);
    case ARCTRACE_VALUE_CLOCK:
      return word_of(value.number, kClocks);
    case ARCTRACE_VALUE_ERRNO:
      return value.signed_number == 0 ? "" : errno_word(value.signed_number);
    default:
      return enumerator_of(value);
  }
}

std::string errno_word(int64_t number) {
  const char* name =
      number > 0 && number < 4096 ? ::strerrorname_np(static_cast<int>(number)) : nullptr;
  return name == nullptr ? absl::StrCat(number) : name;
}

std::string value_text(const CallValue& value) {
  std::string text = value_word(value);
  if (!text.empty()) return text;
  switch (value.kind) {
    case ARCTRACE_VALUE_UNSIGNED:
      return absl::StrCat(value.number);
    case ARCTRACE_VALUE_POINTER:
      if (value.number == 0) return "NULL";
      [[fallthrough]];
    case ARCTRACE_VALUE_HEX:
    case ARCTRACE_VALUE_STRING_LOST:
      return absl::StrCat("0x", absl::Hex(value.number));
    case ARCTRACE_VALUE_OCTAL:
      return absl::StrFormat("%#o", value.number);
    case ARCTRACE_VALUE_CHAR:
      return character(value.number);
    case ARCTRACE_VALUE_FLOAT:
      return float_digits(value);
    case ARCTRACE_VALUE_BOOL:
      return value.number == 0 ? "false" : "true";
    case ARCTRACE_VALUE_STRING:
      append_quoted(text, value.bytes);
      return text;
    case ARCTRACE_VALUE_STRING_CUT:
      append_quoted(text, value.bytes);
      return text + "...";
    default:
      return is_number_kind(value.kind) ? absl::StrCat(value.signed_number)
                                        : hex_bytes(value.bytes);
  }
}

std::string arguments_text(std::span<const std::byte> body, std::string_view names) {
  std::string text = "(";
  for (const CallValue& value : decode_values(body, names)) {
    if (text.size() != 1) text += ", ";
    append_escaped(text, value.name);
    if (!value.name.empty()) text += '=';
    text += value_text(value);
  }
  return text + ")";
}

std::string result_text(std::span<const std::byte> body, std::string_view names) {
  std::string text = " =";
  for (const CallValue& value : decode_values(body, names)) {
    absl::StrAppend(&text, " ", value_text(value));
  }
  return text;
}

}  // namespace arctrace::reader
