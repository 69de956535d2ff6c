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

#include "reader/trace/record.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

struct Word {
  uint64_t number;
  const char* text;
};

constexpr Word kAccessModes[] = {
    {O_RDONLY, "O_RDONLY"}, {O_WRONLY, "O_WRONLY"}, {O_RDWR, "O_RDWR"}};
// Flags of more than one bit come first.
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

// Returns the names of bits; bits without a name follow in hex.
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

// Calls visit(head, bytes) for each arg, and for the names of the other args.
template <class Visit>
void for_each_arg(std::span<const std::byte> body, const Visit& visit) {
  BodyReader reader(body);
  const uint32_t count = reader.read<arctrace_args_body>().count;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto head = reader.read<arctrace_arg_head>();
    const std::span<const std::byte> bytes = reader.bytes(head.size);
    if (reader.ok()) visit(head, bytes);
  }
}

CallArg decode(const arctrace_arg_head& head, std::span<const std::byte> bytes) {
  CallArg arg;
  arg.kind = head.kind;
  arg.index = head.argument;
  if (!is_number_kind(arg.kind)) {
    arg.bytes = as_text(bytes);
    return arg;
  }
  for (size_t i = bytes.size(); i-- > 0;) {
    arg.number = arg.number << 8 | uint64_t(bytes[i]);
  }
  arg.size = static_cast<uint32_t>(bytes.size());
  const size_t unused = 64 - 8 * bytes.size();
  arg.signed_number = static_cast<int64_t>(arg.number << unused) >> unused;
  return arg;
}

// Cuts `text` after its first `separator` and returns what stood before it.
std::string_view cut_off(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// Returns the enumerator of the number, or several that are one bit each; empty if bits
// remain.
std::string enumerator_of(const CallArg& arg) {
  const int64_t number = arg.kind == ARCTRACE_VALUE_SIGNED
                             ? arg.signed_number
                             : static_cast<int64_t>(arg.number);
  std::string flags;
  uint64_t bits = arg.number;
  for (std::string_view words = arg.words; !words.empty();) {
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

std::vector<CallArg> decode_args(std::span<const std::byte> body,
                                 std::string_view names) {
  std::vector<CallArg> args;
  for_each_arg(body,
               [&args](const arctrace_arg_head& head, std::span<const std::byte> bytes) {
                 CallArg arg = decode(head, bytes);
                 if (arg.kind != ARCTRACE_VALUE_NAMES) args.push_back(arg);
               });
  const auto commas = static_cast<size_t>(std::count(names.begin(), names.end(), ','));
  if (names.empty() || commas + 1 != args.size()) return args;
  for (CallArg& arg : args) {
    const std::string_view own = cut_off(names, ',');
    arg.words = own;
    arg.name = cut_off(arg.words, '/');
  }
  return args;
}

LockArgs::LockArgs(std::span<const std::byte> words) {
  const auto count = static_cast<uint32_t>(words.size() / sizeof(arctrace_lock_word));
  size_ = 0;
  const auto add = [this](const void* part, size_t size) {
    std::memcpy(bytes_.data() + size_, part, size);
    size_ += size;
  };
  const arctrace_args_body fixed{.count = count};
  add(&fixed, sizeof fixed);
  for (uint32_t i = 0; i < count; ++i) {
    const arctrace_arg_head head{.kind = ARCTRACE_VALUE_POINTER,
                                 .argument = static_cast<uint8_t>(i + 1),
                                 .size = sizeof(arctrace_lock_word)};
    add(&head, sizeof head);
    add(words.data() + i * sizeof(arctrace_lock_word), sizeof(arctrace_lock_word));
  }
}

SyscallError::SyscallError(uint32_t number) {
  size_t size = 0;
  const auto add = [&](const auto& part) {
    std::memcpy(bytes_.data() + size, &part, sizeof part);
    size += sizeof part;
  };
  const auto add_value = [&add](uint32_t kind, uint32_t value) {
    add(arctrace_arg_head{
        .kind = static_cast<uint8_t>(kind), .argument = 0, .size = sizeof value});
    add(value);
  };
  add(arctrace_args_body{.count = 2});
  add_value(ARCTRACE_VALUE_SIGNED, UINT32_MAX);  // -1
  add_value(ARCTRACE_VALUE_ERRNO, number);
}

int64_t errno_of(std::span<const CallArg> values) {
  if (values.empty() || values.back().kind != ARCTRACE_VALUE_ERRNO) return 0;
  return values.back().signed_number;
}

std::optional<uint32_t> find_arg_names(std::span<const std::byte> body) {
  std::optional<uint32_t> id;
  for_each_arg(body,
               [&id](const arctrace_arg_head& head, std::span<const std::byte> bytes) {
                 const CallArg arg = decode(head, bytes);
                 if (arg.kind == ARCTRACE_VALUE_NAMES)
                   id = static_cast<uint32_t>(arg.number);
               });
  return id;
}

std::string float_digits(const CallArg& arg) {
  std::array<char, 32> digits{};
  std::to_chars_result end{};
  if (arg.size == 4) {
    const auto real = std::bit_cast<float>(static_cast<uint32_t>(arg.number));
    end = std::to_chars(digits.begin(), digits.end(), real);
  } else {
    end = std::to_chars(digits.begin(), digits.end(), std::bit_cast<double>(arg.number));
  }
  return {digits.begin(), end.ptr};
}

std::string arg_word(const CallArg& arg) {
  switch (arg.kind) {
    case ARCTRACE_VALUE_DIRECTORY:
      return arg.signed_number == AT_FDCWD ? "AT_FDCWD" : "";
    case ARCTRACE_VALUE_OPEN_FLAGS:
      return open_flags(arg.number);
    case ARCTRACE_VALUE_ACCESS:
      return arg.number == 0 ? "F_OK" : flags_of(arg.number, kAccess);
    case ARCTRACE_VALUE_PROTECTION:
      return arg.number == 0 ? "PROT_NONE" : flags_of(arg.number, kProtections);
    case ARCTRACE_VALUE_MAP_FLAGS:
      return flags_of(arg.number, kMapFlags);
    case ARCTRACE_VALUE_WHENCE:
      return word_of(arg.number, kWhences);
    case ARCTRACE_VALUE_DOMAIN:
      return word_of(arg.number, kDomains);
    case ARCTRACE_VALUE_SOCKET:
      return socket_type(arg.number);
    case ARCTRACE_VALUE_SIGNAL:
      return signal_word(arg.signed_number);
    case ARCTRACE_VALUE_CLOCK:
      return word_of(arg.number, kClocks);
    case ARCTRACE_VALUE_ERRNO:
      return arg.signed_number == 0 ? "" : errno_word(arg.signed_number);
    default:
      return enumerator_of(arg);
  }
}

std::string errno_word(int64_t number) {
  const char* name =
      number > 0 && number < 4096 ? ::strerrorname_np(static_cast<int>(number)) : nullptr;
  return name == nullptr ? absl::StrCat(number) : name;
}

std::string arg_text(const CallArg& arg) {
  std::string text = arg_word(arg);
  if (!text.empty()) return text;
  switch (arg.kind) {
    case ARCTRACE_VALUE_UNSIGNED:
      return absl::StrCat(arg.number);
    case ARCTRACE_VALUE_POINTER:
      if (arg.number == 0) return "NULL";
      [[fallthrough]];
    case ARCTRACE_VALUE_HEX:
    case ARCTRACE_VALUE_STRING_LOST:
      return absl::StrCat("0x", absl::Hex(arg.number));
    case ARCTRACE_VALUE_OCTAL:
      return absl::StrFormat("%#o", arg.number);
    case ARCTRACE_VALUE_CHAR:
      return character(arg.number);
    case ARCTRACE_VALUE_FLOAT:
      return float_digits(arg);
    case ARCTRACE_VALUE_BOOL:
      return arg.number == 0 ? "false" : "true";
    case ARCTRACE_VALUE_STRING:
      append_quoted(text, arg.bytes);
      return text;
    case ARCTRACE_VALUE_STRING_CUT:
      append_quoted(text, arg.bytes);
      return text + "...";
    default:
      return is_number_kind(arg.kind) ? absl::StrCat(arg.signed_number)
                                      : hex_bytes(arg.bytes);
  }
}

std::string args_text(std::span<const std::byte> body, std::string_view names) {
  std::string text = "(";
  for (const CallArg& arg : decode_args(body, names)) {
    if (text.size() != 1) text += ", ";
    append_escaped(text, arg.name);
    if (!arg.name.empty()) text += '=';
    text += arg_text(arg);
  }
  return text + ")";
}

std::string retval_text(std::span<const std::byte> body, std::string_view names) {
  std::string text = " =";
  for (const CallArg& arg : decode_args(body, names)) {
    absl::StrAppend(&text, " ", arg_text(arg));
  }
  return text;
}

}  // namespace arctrace::reader
