// Types that functions may take and return, as a compiler's DWARF data describes them.
#include <cstdint>
#include <string>

enum class Colour : uint8_t { kRed };
struct Pair {
  int first;
  double second;
};
struct Large {
  long words[4];
};
struct Copied {
  Copied(const Copied& other);
  int number;
};
struct Holder {  // can't be copied byte by byte, because of its member
  Copied inner;
};
using Text = const char* const;

#define TYPED extern "C" __attribute__((noinline, visibility("default")))

TYPED double typed_scalars(int8_t a, unsigned long b, bool c, float d, double e,
                           Colour f) {
  return a + static_cast<double>(b) + c + d + e + static_cast<int>(f);
}

TYPED const char* typed_pointers(Text text, void* any, const std::string& string) {
  return any == nullptr ? text : string.c_str();
}

// The arguments are in a register of each class.
TYPED int typed_pair(Pair pair, int number, double real) {
  return pair.first + number + static_cast<int>(pair.second + real);
}

// The first argument is on the stack; the result in memory that the caller has.
TYPED Large typed_large(Large large, int number) {
  large.words[0] += number;
  return large;
}

// The first argument is passed by reference.
TYPED int typed_holder(Holder holder, int number) { return holder.inner.number + number; }

// Arguments after the registers are on the stack, up to one that may have to be aligned
// there.
TYPED int typed_stacked(Pair a, Pair b, Pair c, Pair d, Pair e, Pair f, char g, double h,
                        short i, Pair j, short k) {
  return a.first + b.first + c.first + d.first + e.first + f.first + g +
         static_cast<int>(h) + i + j.first + k;
}

TYPED long typed_many(long a, long b, long c, long d, long e, long f, long g, double h) {
  return a + b + c + d + e + f + g + static_cast<long>(h);
}

// Variables whose members have names.
struct Owned {
  struct {
    int first_of_none;
    long second_of_none;
  };
  long _library[2];
};
struct Table : Copied {
  union {
    int as_number;
    char as_text[8];
  } cell;
  Owned owned[3];
  Text pointer;
  static long shared;
};
long Table::shared = 1;
namespace typed {
__attribute__((used)) Owned tables[4];
__attribute__((used)) static long grid[2][3] = {{1}};
alignas(8) __attribute__((used)) char holder[sizeof(Table)];
__attribute__((used)) Owned* of_function() {
  static Owned local;
  return &local;
}
extern Table table;
}  // namespace typed
Copied::Copied(const Copied& other) : number(other.number) {}
namespace typed {
__attribute__((used)) Table table = table;
}
