// Functions whose names, addresses and lines the tests know. CMakeLists.txt builds them
// in several forms, never instrumented or sanitized.

int fixture_add(int a, int b) {
  int sum = a + b + FIXTURE_VARIANT;
  return sum;
}

static __attribute__((noinline, used)) int fixture_local(int a) {
  return fixture_add(a, 3) * 7;
}

int fixture_calls_local(int a) { return fixture_local(a) - 1; }

// Three names at one address.
int __fixture_aliased(int a) { return a ^ 0x55; }
int fixture_aliased(int a) __attribute__((alias("__fixture_aliased")));
int fixture_weak_alias(int a) __attribute__((weak, alias("__fixture_aliased")));

static int fixture_chosen(int a) { return a + 2; }
static int (*fixture_choose(void))(int) { return fixture_chosen; }
int fixture_indirect(int a) __attribute__((ifunc("fixture_choose")));

// A function without a size, then one with, in a section of their own.
__asm__(
    ".pushsection .text.fixture_unsized,\"ax\",@progbits\n"
    ".globl fixture_unsized\n"
    ".type fixture_unsized, @function\n"
    "fixture_unsized:\n"
    ".skip 16, 0xc3\n"
    ".globl fixture_sized\n"
    ".type fixture_sized, @function\n"
    "fixture_sized:\n"
    ".skip 8, 0xc3\n"
    ".size fixture_sized, 8\n"
    ".skip 8, 0xc3\n"
    ".popsection\n");
