#include "writer_shim/frame_rule.hpp"

#include <dlfcn.h>

// In glibc since 2.35: lock-free, also inside signal handlers. Without it all rules are
// unknown.
extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept
    __attribute__((weak));

namespace arctrace::shim {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kStackPointerRegister = 7;
constexpr uint64_t kFramePointerRegister = 6;
constexpr uint64_t kReturnAddressRegister = 16;
#elif defined(__aarch64__)
constexpr uint64_t kStackPointerRegister = 31;
constexpr uint64_t kFramePointerRegister = 29;
constexpr uint64_t kReturnAddressRegister = 30;
#endif

// Pointer encodings (DW_EH_PE_*).
constexpr uint8_t kAbsolute = 0x00;
constexpr uint8_t kUnsigned2 = 0x02;
constexpr uint8_t kUnsigned4 = 0x03;
constexpr uint8_t kUnsigned8 = 0x04;
constexpr uint8_t kSigned2 = 0x0a;
constexpr uint8_t kSigned4 = 0x0b;
constexpr uint8_t kSigned8 = 0x0c;
constexpr uint8_t kFormMask = 0x0f;
constexpr uint8_t kRelativeMask = 0xf0;
constexpr uint8_t kPcRelative = 0x10;
constexpr uint8_t kDataRelative = 0x30;

// A cursor over mapped bytes. Past the end, or at what it can't read, it fails for good
// and yields zeros.
class Bytes {
 public:
  Bytes(uintptr_t at, uintptr_t end) : at_(at), end_(end), good_(at <= end) {}

  bool good() const { return good_; }
  bool more() const { return good_ && at_ < end_; }
  uintptr_t at() const { return at_; }
  uintptr_t left() const { return end_ - at_; }
  void fail() { good_ = false; }

  template <class T>
  T take() {
    T value{};
    if (!good_ || end_ - at_ < sizeof(T)) {
      good_ = false;
      return value;
    }
    __builtin_memcpy(&value, reinterpret_cast<const void*>(at_), sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }

  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
      const auto byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    fail();
    return 0;
  }

  uintptr_t pointer(uint8_t encoding) {
    const uintptr_t place = at_;
    uintptr_t value = 0;
    switch (encoding & kFormMask) {
      case kAbsolute:
      case kUnsigned8:
      case kSigned8:
        value = take<uint64_t>();
        break;
      case kUnsigned4:
        value = take<uint32_t>();
        break;
      case kSigned4:
        value = static_cast<uintptr_t>(int64_t{take<int32_t>()});
        break;
      case kUnsigned2:
        value = take<uint16_t>();
        break;
      case kSigned2:
        value = static_cast<uintptr_t>(int64_t{take<int16_t>()});
        break;
      default:
        fail();
    }
    if ((encoding & kRelativeMask) == kPcRelative) return value + place;
    if ((encoding & kRelativeMask) != 0) fail();
    return value;
  }

  // The next `size` bytes by themselves.
  Bytes part(uint64_t size) {
    if (!good_ || size > end_ - at_) {
      good_ = false;
      return {at_, at_};
    }
    const uintptr_t from = at_;
    at_ += size;
    return {from, at_};
  }

 private:
  uintptr_t at_;
  uintptr_t end_;
  bool good_;
};

// One entry of .eh_frame, from its id on; nothing if it has the 64-bit form.
Bytes entry_at(uintptr_t at, uintptr_t low, uintptr_t high) {
  if (at < low || at >= high) return {1, 0};
  Bytes bytes(at, high);
  const auto length = bytes.take<uint32_t>();
  if (length == UINT32_MAX) bytes.fail();
  return bytes.part(length);
}

struct Cie {
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  uint8_t encoding = kAbsolute;
  bool has_augmentation = false;
};

// The common entry up to its instructions, which stay in `bytes`.
Cie take_cie(Bytes& bytes) {
  Cie cie;
  if (bytes.take<uint32_t>() != 0) bytes.fail();
  const auto version = bytes.take<uint8_t>();
  if (version != 1 && version != 3) bytes.fail();
  char letters[8] = {};
  size_t count = 0;
  for (;;) {
    const auto letter = bytes.take<char>();
    if (letter == '\0') break;
    if (count == sizeof letters) bytes.fail();
    if (!bytes.good()) return cie;
    letters[count++] = letter;
  }
  cie.code_alignment = bytes.uleb();
  cie.data_alignment = bytes.sleb();
  if (version == 1) {
    bytes.take<uint8_t>();
  } else {
    bytes.uleb();
  }
  if (count == 0) return cie;
  if (letters[0] != 'z') bytes.fail();
  cie.has_augmentation = true;
  Bytes data = bytes.part(bytes.uleb());
  for (size_t i = 1; i < count; ++i) {
    switch (letters[i]) {
      case 'R':
        cie.encoding = data.take<uint8_t>();
        break;
      case 'P':
        data.pointer(data.take<uint8_t>() & kFormMask);
        break;
      case 'L':
        data.take<uint8_t>();
        break;
      case 'S':  // a signal frame: its rule is that of the address itself
      case 'B':  // aarch64: signed return addresses
        break;
      default:
        data.fail();
    }
  }
  if (!data.good()) bytes.fail();
  return cie;
}

// Where a register of the caller's stands.
struct Saved {
  FrameRule::FramePointer where = FrameRule::FramePointer::kSame;
  int64_t offset = 0;
};

struct Row {
  uint64_t base_register = 0;
  int64_t offset = 0;
  bool is_saved = false;    // an expression: what stands at base register + offset
  bool is_unknown = false;  // another expression
  Saved frame_pointer;
  Saved return_address;

  // Null: a register that we don't follow.
  Saved* saved(uint64_t number) {
    if (number == kFramePointerRegister) return &frame_pointer;
    return number == kReturnAddressRegister ? &return_address : nullptr;
  }
};

// DW_OP_bregN offset, which is how compilers tell places in a realigned stack.
struct BaseExpression {
  uint64_t base_register;
  int64_t offset;
  bool good;
};

BaseExpression take_base(Bytes& code) {
  constexpr uint8_t kBreg0 = 0x70;
  constexpr uint8_t kBreg31 = 0x8f;
  const auto operation = code.take<uint8_t>();
  const int64_t offset = code.sleb();
  return {uint64_t{operation} - kBreg0, offset,
          code.good() && operation >= kBreg0 && operation <= kBreg31};
}

// Runs call frame instructions until the row for `pc`; only the CFA's rule is kept.
class Program {
 public:
  Program(const Cie& cie, uintptr_t begin, uintptr_t pc)
      : cie_(cie), location_(begin), pc_(pc) {}

  // False: an instruction that it does not know, or broken ones.
  bool run(Bytes& code) {
    while (code.more() && !past_) {
      const auto byte = code.take<uint8_t>();
      const uint8_t low = byte & 0x3f;
      switch (byte & 0xc0) {
        case 0x40:
          advance(low);
          break;
        case 0x80:
          save(low, FrameRule::FramePointer::kAtCfa, factored(code.uleb()));
          break;
        case 0xc0:
          restore(low);
          break;
        default:
          if (!step(low, code)) return false;
      }
    }
    return code.good();
  }

  // What restored registers go back to: the rules of the common entry.
  void keep_initial() { initial_ = row_; }

  const Row& row() const { return row_; }

 private:
  static constexpr size_t kRemembered = 8;

  void advance(uint64_t by) { move_to(location_ + by * cie_.code_alignment); }
  void move_to(uintptr_t location) {
    location_ = location;
    past_ = location > pc_;
  }

  int64_t factored(uint64_t offset) const {
    return static_cast<int64_t>(offset) * cie_.data_alignment;
  }

  void save(uint64_t number, FrameRule::FramePointer where, int64_t offset) {
    if (Saved* saved = row_.saved(number); saved != nullptr) *saved = {where, offset};
  }

  void restore(uint64_t number) {
    if (Saved* saved = row_.saved(number); saved != nullptr) {
      *saved = *initial_.saved(number);
    }
  }

  bool step(uint8_t operation, Bytes& code) {
    using Where = FrameRule::FramePointer;
    uint64_t number = 0;
    switch (operation) {
      case 0x00:  // nop
      case 0x2d:  // aarch64: return address signed or not
        return true;
      case 0x01:
        move_to(code.pointer(cie_.encoding));
        return true;
      case 0x02:
        advance(code.take<uint8_t>());
        return true;
      case 0x03:
        advance(code.take<uint16_t>());
        return true;
      case 0x04:
        advance(code.take<uint32_t>());
        return true;
      case 0x2e:  // size of pushed arguments
        code.uleb();
        return true;
      case 0x05:
        number = code.uleb();
        save(number, Where::kAtCfa, factored(code.uleb()));
        return true;
      case 0x11:
        number = code.uleb();
        save(number, Where::kAtCfa, code.sleb() * cie_.data_alignment);
        return true;
      case 0x06:
        restore(code.uleb());
        return true;
      case 0x08:
        save(code.uleb(), Where::kSame, 0);
        return true;
      case 0x07:  // undefined
        save(code.uleb(), Where::kUnknown, 0);
        return true;
      case 0x09:  // in another register, or computed
      case 0x14:
      case 0x2f:
        save(code.uleb(), Where::kUnknown, 0);
        code.uleb();
        return true;
      case 0x15:
        save(code.uleb(), Where::kUnknown, 0);
        code.sleb();
        return true;
      case 0x10:
      case 0x16:
        number = code.uleb();
        save_expression(number, code.part(code.uleb()), operation == 0x10);
        return true;
      default:
        return step_cfa(operation, code);
    }
  }

  void save_expression(uint64_t number, Bytes code, bool is_place) {
    const BaseExpression base = take_base(code);
    const bool known = is_place && base.good && !code.more() &&
                       base.base_register == kFramePointerRegister;
    save(number,
         known ? FrameRule::FramePointer::kAtItself : FrameRule::FramePointer::kUnknown,
         base.offset);
  }

  void set_cfa(uint64_t base_register, int64_t offset) {
    row_.base_register = base_register;
    row_.offset = offset;
    row_.is_saved = row_.is_unknown = false;
  }

  bool step_cfa(uint8_t operation, Bytes& code) {
    uint64_t number = 0;
    switch (operation) {
      case 0x0a:
        if (remembered_count_ == kRemembered) return false;
        remembered_[remembered_count_++] = row_;
        return true;
      case 0x0b:
        if (remembered_count_ == 0) return false;
        row_ = remembered_[--remembered_count_];
        return true;
      case 0x0c:
        number = code.uleb();
        set_cfa(number, static_cast<int64_t>(code.uleb()));
        return true;
      case 0x0d:
        row_.base_register = code.uleb();
        return true;
      case 0x0e:
        row_.offset = static_cast<int64_t>(code.uleb());
        return true;
      case 0x0f:
        set_cfa_expression(code.part(code.uleb()));
        return true;
      case 0x12:
        number = code.uleb();
        set_cfa(number, code.sleb() * cie_.data_alignment);
        return true;
      case 0x13:
        row_.offset = code.sleb() * cie_.data_alignment;
        return true;
      default:
        return false;
    }
  }

  void set_cfa_expression(Bytes code) {
    constexpr uint8_t kDeref = 0x06;
    const BaseExpression base = take_base(code);
    set_cfa(base.base_register, base.offset);
    row_.is_saved = true;
    row_.is_unknown =
        !base.good || code.take<uint8_t>() != kDeref || !code.good() || code.more();
  }

  const Cie& cie_;
  uintptr_t location_;
  uintptr_t pc_;
  bool past_ = false;
  Row row_;
  Row initial_;
  Row remembered_[kRemembered];
  size_t remembered_count_ = 0;
};

bool fits(int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; }

FrameRule rule_of_row(const Row& row, uintptr_t function) {
  FrameRule rule;
  rule.function = function;
  if (row.is_unknown || !fits(row.offset) || !fits(row.frame_pointer.offset) ||
      !fits(row.return_address.offset)) {
    return rule;
  }
  if (row.base_register == kFramePointerRegister) {
    rule.base = row.is_saved ? FrameRule::Base::kSaved : FrameRule::Base::kFramePointer;
  } else if (row.base_register == kStackPointerRegister && !row.is_saved) {
    rule.base = FrameRule::Base::kStackPointer;
  }
  rule.offset = static_cast<int32_t>(row.offset);
  rule.frame_pointer = row.frame_pointer.where;
  rule.frame_pointer_offset = static_cast<int32_t>(row.frame_pointer.offset);
  if (row.return_address.where == FrameRule::FramePointer::kAtCfa) {
    rule.return_address_offset = static_cast<int32_t>(row.return_address.offset);
  }
  return rule;
}

FrameRule rule_of_fde(uintptr_t at, uintptr_t low, uintptr_t high, uintptr_t pc) {
  Bytes fde = entry_at(at, low, high);
  const uintptr_t id_place = fde.at();
  const auto id = fde.take<uint32_t>();
  if (!fde.good() || id == 0 || id > id_place - low) return {};
  Bytes cie_bytes = entry_at(id_place - id, low, high);
  const Cie cie = take_cie(cie_bytes);
  if (!cie_bytes.good()) return {};
  const uintptr_t begin = fde.pointer(cie.encoding);
  const uintptr_t size = fde.pointer(cie.encoding & kFormMask);
  if (cie.has_augmentation) fde.part(fde.uleb());
  if (!fde.good() || pc - begin >= size) return {};
  Program program(cie, begin, pc);
  if (!program.run(cie_bytes)) return {};
  program.keep_initial();
  if (!program.run(fde)) return {};
  return rule_of_row(program.row(), begin);
}

}  // namespace

FrameRule find_frame_rule_in(const std::byte* eh_frame_hdr, uintptr_t low, uintptr_t high,
                             uintptr_t pc) {
  const auto header = reinterpret_cast<uintptr_t>(eh_frame_hdr);
  if (header < low || header >= high) return {};
  Bytes bytes(header, high);
  const auto version = bytes.take<uint8_t>();
  const auto eh_frame_encoding = bytes.take<uint8_t>();
  const auto count_encoding = bytes.take<uint8_t>();
  const auto table_encoding = bytes.take<uint8_t>();
  // The one form of a sorted table that linkers make.
  if (version != 1 || table_encoding != (kDataRelative | kSigned4)) return {};
  bytes.pointer(eh_frame_encoding);
  const uint64_t count = bytes.pointer(count_encoding);
  struct Entry {
    int32_t code;
    int32_t fde;
  };
  if (!bytes.good() || count == 0 || count > bytes.left() / sizeof(Entry)) return {};
  const uintptr_t table = bytes.at();
  const auto entry = [&](uint64_t index) {
    Entry value;
    __builtin_memcpy(&value, reinterpret_cast<const void*>(table + index * sizeof(Entry)),
                     sizeof value);
    return value;
  };
  const auto wanted = static_cast<int64_t>(pc - header);
  uint64_t first = 0;  // entries before it begin at or before pc
  uint64_t last = count;
  while (first < last) {
    const uint64_t middle = first + (last - first) / 2;
    if (entry(middle).code <= wanted) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  if (first == 0) return {};
  const auto fde = static_cast<uintptr_t>(int64_t{entry(first - 1).fde});
  return rule_of_fde(header + fde, low, high, pc);
}

FrameRule find_frame_rule(uintptr_t pc) {
  if (_dl_find_object == nullptr) return {};
  dl_find_object object{};
  if (_dl_find_object(reinterpret_cast<void*>(pc), &object) != 0 ||
      object.dlfo_eh_frame == nullptr) {
    return {};
  }
  return find_frame_rule_in(static_cast<const std::byte*>(object.dlfo_eh_frame),
                            reinterpret_cast<uintptr_t>(object.dlfo_map_start),
                            reinterpret_cast<uintptr_t>(object.dlfo_map_end), pc);
}

}  // namespace arctrace::shim
