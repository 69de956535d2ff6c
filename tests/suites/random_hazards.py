"""Random programs that combine everything that is hard for a tracer.

Coroutines on stacks of each kind, nested functions and their trampolines, comparators that switch
and jump out of qsort, handlers, tasks that fork, vfork and clone make, threads, libraries that are
loaded and unloaded, and split stacks, which go with fewer of the others. One thing runs at a time,
so that a program does the same each time; at its end it prints a sum of all that it did.
"""

import random

import suites

FUNCTIONS = 14
PROGRAMS = 100  # of which a run takes a part

HEAD = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define COROUTINES 6
#define STACK (1 << 20)

static uint32_t state = SEEDu;
static long total;
static int budget, tasks, opened, switches, jumps, in_task;
static jmp_buf *point;
static NOINLINE uint32_t next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state >> 3;
}
#define STOP (budget-- <= 0 || depth > 30)
"""

COROUTINE = r"""
typedef struct { ucontext_t me, back; int begun, running, over; } Coroutine;
static Coroutine coroutines[COROUTINES];
static Coroutine *current;

static long work(long a, int depth);

static void body(int index) {
  Coroutine *self = &coroutines[index];
  for (int i = 0; i < 4; ++i) total += work(i, 5);
  self->over = 1;
}

static NOINLINE void begin(int index, char *stack, size_t size) {
  Coroutine *co = &coroutines[index];
  getcontext(&co->me);
  co->me.uc_stack.ss_sp = stack;
  co->me.uc_stack.ss_size = size;
  co->me.uc_link = &co->back;
  makecontext(&co->me, (void (*)(void))body, 1, index);
  co->begun = 1;
  co->over = 0;
}

static NOINLINE void resume(int index) {
  Coroutine *co = &coroutines[index];
  if (!co->begun || co->running || co->over || in_task) return;
  Coroutine *outer = current;
  jmp_buf *outer_point = point;
  current = co;
  point = NULL;
  co->running = 1;
  ++switches;
  swapcontext(&co->back, &co->me);
  co->running = 0;
  current = outer;
  point = outer_point;
}

static NOINLINE void yield(void) {
  Coroutine *self = current;
  if (self == NULL || in_task) return;
  jmp_buf *own_point = point;
  swapcontext(&self->me, &self->back);
  point = own_point;
}

/* The coroutine on this function's own array is never resumed after it. */
static NOINLINE long on_array(int index, int depth) {
  char stack[STACK];
  jmp_buf *old_point = point;
  point = NULL;
  begin(index, stack, sizeof stack);
  const int count = (int)(next() % 4) + 1;
  for (int i = 0; i < count; ++i) {
    resume(index);
    total += work(i, depth + 1);
  }
  coroutines[index].begun = 0;
  point = old_point;
  return count;
}

static NOINLINE long on_local_stack(int index, int depth) {
  return current != NULL || in_task || coroutines[index].begun ? 1 : on_array(index, depth);
}

/* Trampolines of nested functions are executed on the stack. */
static char *map_stack(void) {
  return mmap(NULL, STACK, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void signal_self(void) { raise(SIGUSR1); }

static void begin_all(void) {
  static char stacks[2][STACK] __attribute__((aligned(4096)));
  mprotect(stacks, sizeof stacks, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (int i = 0; i < COROUTINES - 2; ++i) begin(i, i < 2 ? stacks[i] : map_stack(), STACK);
}

static int child(void *argument) {
  point = NULL;
  total += work((long)(intptr_t)argument, 20);
  _exit(3);
}

static NOINLINE void task(int kind) {
  if (tasks >= 12 || current != NULL || in_task) return;
  ++tasks;
  static const int flags[] = {SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD, CLONE_VM | SIGCHLD,
                              CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD};
  char *stack = map_stack();
  const int old_budget = budget;
  jmp_buf *old_point = point;
  budget = 15;
  in_task = 1;
  const pid_t pid = clone(child, stack + STACK, flags[kind % 4], (void *)(intptr_t)kind);
  int status = 0;
  waitpid(pid, &status, 0);
  total += WEXITSTATUS(status);
  munmap(stack, STACK);
  in_task = 0;
  point = old_point;
  budget = old_budget;
}
"""

# There are no signals: the kernel's signal frame may need more space than a part of the stack has
# left, so that one of 30 such programs ended untraced too. SIGPROF, for the profile of -pg, is off
# as well.
NO_COROUTINE = r"""
static long work(long a, int depth);
static void resume(int index) { total += index; }
static void yield(void) {}
static long on_local_stack(int index, int depth) { return index + depth; }
static void begin_all(void) {
  extern void moncontrol(int);
  moncontrol(0);
}
static void signal_self(void) { ++total; }
static void task(int kind) { total += kind; }
"""

TASKS = r"""
static NOINLINE void forks(int is_vfork) {
  if (tasks >= 12 || in_task) return;
  ++tasks;
  const int old_budget = budget;
  jmp_buf *old_point = point;
  budget = 15;
  point = NULL;
  in_task = 1;
  const pid_t pid = is_vfork ? vfork() : fork();
  if (pid == 0) {
    total += work(2, 20);
    _exit(4);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  total += WEXITSTATUS(status);
  in_task = 0;
  budget = old_budget;
  point = old_point;
}

static void *thread(void *argument) {
  total += work((long)(intptr_t)argument, 10);
  return argument;
}

static NOINLINE void threads(void) {
  if (tasks >= 12 || in_task || IN_COROUTINE) return;
  ++tasks;
  jmp_buf *old_point = point;
  const int old_budget = budget;
  budget = 20;
  point = NULL;
  pthread_t id;
  if (pthread_create(&id, NULL, thread, (void *)(intptr_t)3) == 0) pthread_join(id, NULL);
  point = old_point;
  budget = old_budget;
}

static NOINLINE void plug(int depth) {
  if (opened >= 20) return;
  ++opened;
  void *library = dlopen(PLUGIN, next() % 2 == 0 ? RTLD_NOW : RTLD_LAZY);
  if (library == NULL) {
    puts(dlerror());
    exit(1);
  }
  long (*function)(long, long (*)(long, int), int) =
      (long (*)(long, long (*)(long, int), int))dlsym(library, "plug");
  jmp_buf *old_point = point;
  point = NULL;
  total += function(opened, work, depth + 1);
  point = old_point;
  if (next() % 4 != 0) dlclose(library);
}

static void handler(int number) {
  jmp_buf *old_point = point;
  point = NULL;
  const int old_budget = budget;
  budget = 6;
  total += work(number, 25);
  budget = old_budget;
  point = old_point;
}

static int by_value(const void *left, const void *right) {
  total += work(1, 28);
  return *(const int *)left - *(const int *)right;
}

static NOINLINE long apply(long (*function)(long), long a) { return function(a) + 1; }
"""

TAIL = r"""
int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGUSR1, &action, NULL);
  begin_all();
  for (int i = 0; i < 40; ++i) {
    budget = 60;
    point = NULL;
    total += work(i, 0);
  }
  printf("%ld %d %d %d %d %u\n", total, tasks, opened, switches, jumps, state);
  return 0;
}
"""

PLUGIN = r"""
static long inner(long a) { volatile long b = a; return b * 3; }
long plug(long a, long (*back)(long, int), int depth) { return inner(a) + back(a, depth); }
"""


class Program:
    """`has_coroutines`: false with split stacks, whose limits only their own switches change."""

    def __init__(self, seed, has_coroutines):
        self.random = random.Random(seed)
        self.has_coroutines = has_coroutines

    def call(self, index):
        if self.random.random() < 0.2:
            return "work(a + 1, depth + 1)"
        callee = self.random.randrange(FUNCTIONS)
        if callee == index and self.random.random() < 0.5:
            callee = (index + 1) % FUNCTIONS
        return f"f{callee}(a + {self.random.randrange(9)}, depth + 1)"

    def statement(self, index, level=0):
        call = self.call(index)
        number = self.random.randrange(6)
        simple = [
            f"x += {call};",
            f"if (next() % 2) x += {call};",
            f"resume({number}); x += a;",
            f"resume({number}); x += {call};",
            "yield(); x += 2;",
            f"yield(); x += {call};",
            f"{{ char *room = alloca(next() % 900 + 1); memset(room, (int)a, 1); x += {call}; "
            "x += room[0]; }",
            "if (next() % 3 == 0) { signal_self(); x += 1; }",
            "if (point != NULL && next() % 3 == 0) { ++jumps; longjmp(*point, 1); }",
            f"if (next() % 3 == 0) task({number});",
            f"if (next() % 4 == 0) forks({number % 2});",
            "if (next() % 4 == 0) threads();",
            "if (next() % 3 == 0) plug(depth);",
            f"if (next() % 3 == 0) x += on_local_stack({4 + number % 2}, depth);",
        ]
        if level > 1 or self.random.random() < 0.7:
            return self.random.choice(simple)
        inner = " ".join(self.statement(index, level + 1) for _ in range(2))
        # Without coroutines stacks are split, and parts of them are not executable.
        sum_up = "x += apply(add, a);" if self.has_coroutines else ""
        order = "order" if self.has_coroutines else "by_value"
        return self.random.choice([
            f"{{ jmp_buf here; jmp_buf *outer = point; if (setjmp(here) == 0) {{ point = &here; "
            f"{inner} }} point = outer; }}",
            f"{{ long sum = a; auto long add(long b); long add(long b) {{ sum += b; "
            f"x += {call}; return sum; }} {sum_up} x += add(2); {inner} }}",
            "{ int compares = 0; auto int order(const void *l, const void *r); "
            "int order(const void *l, const void *r) { ++compares; "
            f"if (compares == 2) {{ x += {call}; }} "
            "return *(const int *)l - *(const int *)r; } "
            "int array[4] = {3, (int)(next() % 5), 2, 0}; "
            f"qsort(array, 4, sizeof array[0], {order}); x += array[1] + compares; {inner} }}",
        ])

    def function(self, index):
        body = "\n  ".join(self.statement(index) for _ in range(self.random.randrange(1, 5)))
        end = self.random.choice(["return x;", f"return {self.call(index)};", "return x + a;"])
        return (f"static NOINLINE long f{index}(long a, int depth) {{\n  volatile long x = a;\n"
                f"  if (STOP) return a;\n  {body}\n  {end}\n}}\n")

    def text(self):
        parts = [HEAD.replace("SEED", str(self.random.randrange(1, 1 << 32))),
                 COROUTINE if self.has_coroutines else NO_COROUTINE,
                 TASKS.replace("IN_COROUTINE", "current != NULL" if self.has_coroutines else "0")]
        parts += [f"static long f{i}(long a, int depth);\n" for i in range(FUNCTIONS)]
        parts += [self.function(i) for i in range(FUNCTIONS)]
        names = ", ".join(f"f{i}" for i in range(FUNCTIONS))
        parts.append(f"static long (*volatile functions[])(long, int) = {{{names}}};\n"
                     "static long work(long a, int depth) {\n"
                     f"  return STOP ? a : functions[next() % {FUNCTIONS}](a, depth + 1);\n}}\n")
        parts.append(TAIL)
        return "".join(parts)


class RandomHazards(suites.Suite):
    name = "random"
    seconds = 60

    def prepare(self):
        (self.place / "plugin.c").write_text(PLUGIN)
        for hook, flags in suites.HOOKS.items():
            self.build(["gcc", "-O1", *flags, "-shared", "-fPIC", "plugin.c", "-o",
                        f"plugin-{hook}.so"], self.place)

    def programs(self):
        for _ in range(max(1, round(PROGRAMS * self.part))):
            yield from self.of_seed(self.random.randrange(1 << 32))

    def of_seed(self, seed):
        """One program with each kind of hook; every fourth has split stacks."""
        splits = seed % 4 == 3
        source = self.place / f"{seed}.c"
        source.write_text(Program(seed, not splits).text())
        level = random.Random(seed).choice(["-O0", "-O1", "-O2", "-Os"])
        for hook, flags in suites.HOOKS.items():
            options = [level]
            if splits:
                # gold wants to know the code before a split stack's, so these programs have no
                # hooks with it.
                is_gold = seed % 8 == 3 and hook in ("plain", "cyg")
                options += ["-fsplit-stack", f"-fuse-ld={'gold' if is_gold else 'bfd'}"]
            program = self.place / f"{seed}-{hook}"
            self.build(["gcc", "-g", "-w", "-pthread", "-fno-inline", *options, *flags,
                        f'-DPLUGIN="./plugin-{hook}.so"', source, "-o", program], self.place)
            # A program that needs more stack than there is ends, instead of changing what lies
            # below its part of the stack.
            guards = {"SPLIT_STACK_GUARD": "1"} if splits else {}
            yield suites.Program(f"{source.name} {' '.join((*options, *flags))}", [program],
                                 self.place, guards)
