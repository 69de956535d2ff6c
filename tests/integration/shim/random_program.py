"""Writes random C programs that know their own call tree.

They call functions of every kind (inlined, through pointers, with arguments on the stack),
grow their frames (alloca, variable-length arrays), and jump. Each keeps a list of its entries
with their true depths, and writes it to truth.txt. The programs avoid one thing that only debug
information could show: a jump out of a function into the very machine frame that it is inlined
into. So the code after a setjmp calls only functions that are never inlined.
"""

import random

FUNCTIONS = 24

PROLOGUE = """
#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PLAIN __attribute__((no_instrument_function))
#define ENTER(number)                 \\
  const int own_depth = depth++;      \\
  truth[entries].depth = own_depth;   \\
  truth[entries++].function = number
#define LEAVE depth = own_depth
#define STOP (entries > 30000 || budget-- <= 0 || own_depth > 40)

static struct { int depth, function; } truth[40000];
static int entries, depth, jumps, budget;
static jmp_buf points[64];
static volatile int point_count;
static volatile int sink;
static uint32_t state = SEEDu;

static inline PLAIN __attribute__((always_inline)) uint32_t next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}
"""

EPILOGUE = """
int main(int count, char **arguments) {
  (void)arguments;
  for (int i = 0; i < 200 && entries < 25000; ++i) {
    budget = 400;
    depth = 0;
    point_count = 0;
    const unsigned first = next() % TARGETS;
    targets[first](count);
  }
  FILE *file = fopen("truth.txt", "w");
  for (int i = 0; i < entries; ++i) {
    fprintf(file, "%d f%d\\n", truth[i].depth, truth[i].function);
  }
  fclose(file);
  printf("%d calls, %d jumps\\n", entries, jumps);
  return 0;
}
"""

ATTRIBUTES = {
    "noinline": "__attribute__((noinline)) static",
    "void": "__attribute__((noinline)) static",
    "many": "__attribute__((noinline)) static",
    "plain": "static",
    "inline": "static inline",
    "always": "static inline __attribute__((always_inline))",
}
NEVER_INLINED = ("noinline", "void", "many")
JUMP = ("if (point_count > 0 && next() % 6 == 0) { ++jumps; const int to = (int)(next() % "
        "(uint32_t)point_count); point_count = to; longjmp(points[to], 1); }")


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        kinds = ["noinline", "noinline", "plain", "inline", "inline", "always", "many", "void",
                 "void"]
        self.kinds = [self.random.choice(kinds) for _ in range(FUNCTIONS)]
        self.targets = [i for i, kind in enumerate(self.kinds)
                        if kind in ("noinline", "plain", "inline")]

    def head(self, index):
        kind = self.kinds[index]
        result = "void" if kind == "void" else "int"
        arguments = "int a"
        if kind == "many":
            arguments += ", int b, int c, int d, int e, int f, long g, long h, int i"
        return f"{ATTRIBUTES[kind]} {result} f{index}({arguments})"

    def call(self, index, argument, never_inlined):
        """A call from function `index`, of a later function or through a pointer."""
        callee = None
        if index + 1 < FUNCTIONS and self.random.random() < 0.8:
            callee = self.random.randrange(index + 1, FUNCTIONS)
        if callee is None or (never_inlined and self.kinds[callee] not in NEVER_INLINED):
            return f"targets[next() % {len(self.targets)}]({argument})"
        if self.kinds[callee] == "many":
            return f"f{callee}({argument}, 2, 3, 4, 5, sink, 7, 8, sink)"
        if self.kinds[callee] == "void":
            return f"(f{callee}({argument}), 1)"
        return f"f{callee}({argument})"

    def statements(self, index, count, level=0, may_set=False, never_inlined=False):
        return " ".join(self.statement(index, level, may_set, never_inlined)
                        for _ in range(count))

    def statement(self, index, level, may_set, never_inlined):
        def call(argument="a + 1"):
            return self.call(index, argument, never_inlined)

        def inner(**options):
            return self.statements(index, 2, level + 1, **options)

        kind = self.kinds[index]
        choice = self.random.randrange(14)
        if choice < 4:
            return f"x += {call()};"
        if choice == 4:
            return f"if (next() % 3 == 0) x += {call()};"
        if choice == 5:
            return f"for (int k = 0; k < (int)(next() % 3); ++k) x += {call('k')};"
        if choice == 6 and level < 2 and kind != "always":
            return ("{ const int n = (int)(next() % 200) + 1; char room[n]; "
                    f"memset(room, a, (size_t)n); sink += room[n - 1]; "
                    f"{inner(may_set=may_set, never_inlined=never_inlined)} sink += room[0]; }}")
        if choice == 7 and kind not in ("inline", "always"):
            return ("{ volatile char *room = alloca(next() % 300 + 1); room[0] = 1; "
                    "sink += room[0]; }")
        if choice == 8:
            return f"x += {call(call('1'))};"
        if choice == 9 and may_set and level < 1:
            return ("if (point_count < 60) { const int point = point_count; "
                    "if (setjmp(points[point]) == 0) { point_count = point + 1; "
                    f"{inner(never_inlined=True)} point_count = point; }} else {{ "
                    f"point_count = point; depth = own_depth + 1; {inner()} }} }}")
        if choice == 10:
            return JUMP
        if choice == 11:
            return f"x += targets[next() % {len(self.targets)}](a);"
        if choice == 12:
            return (f"{{ char large[{self.random.randrange(8, 2000)}]; "
                    "memset(large, a, sizeof large); sink += large[3]; "
                    f"x += {call()}; sink += large[5]; }}")
        return "sink += a;"

    def function(self, index):
        kind = self.kinds[index]
        body = self.statements(index, self.random.randrange(1, 6),
                               may_set=kind in ("noinline", "plain", "many", "void"))
        if kind == "void":
            # The last act is the exit hook, or something else.
            stop = "return;"
            end = self.random.choice(["LEAVE;", "sink += x; LEAVE;"])
        else:
            stop = "return 0;"
            end = "{ const int result = x + sink; LEAVE; return result; }"
        return (f"{self.head(index)} {{\n  ENTER({index});\n  volatile int x = a;\n"
                f"  if (STOP) {{ LEAVE; {stop} }}\n  {body}\n  {end}\n}}\n")

    def text(self):
        names = ", ".join(f"f{i}" for i in self.targets)
        parts = [PROLOGUE.replace("SEED", str(self.random.randrange(1, 1 << 32)))]
        parts += [f"{self.head(i)};\n" for i in range(FUNCTIONS)]
        parts.append(f"static int (*volatile targets[])(int) = {{{names}}};\n")
        parts += [self.function(i) for i in range(FUNCTIONS)]
        parts.append(EPILOGUE.replace("TARGETS", str(len(self.targets))))
        return "".join(parts)


def generate(seed):
    return Program(seed).text()
