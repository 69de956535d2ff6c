/* Measures how much of a signal stack the calls of handlers take, beside what the kernel
 * puts there.
 *
 *   signal_stacks BYTES [waits]
 *
 * The calls are a handler's first and later ones, of a function and of the library, in
 * main and in a thread, and those of a handler that interrupts a handler. For each it
 * prints "little" if they take BYTES at most beside the handlers' own frames, else how
 * many. A stack has space for that and no more, and a page below it that cannot be
 * touched. `waits`: main's first signal comes from outside, after "begins"; until then
 * neither thread calls anything. It must be linked with -z now: the loader takes 3 KB for
 * a function that it looks up at its first call. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kUnused = 0xa5, kOwn = 128, kAlignment = 64 };

struct Stack {
  unsigned char* low;
  size_t size;
};

static long bytes_max;                      /* with the handlers' own */
static const unsigned char* volatile frame; /* of the innermost handler */
static volatile sig_atomic_t nests;
static volatile long calls;
static int waits;
/* Each thread has its own signal: one that comes from outside is the process'. */
static __thread int own_signal;
static __thread volatile sig_atomic_t is_handled;

__attribute__((noinline)) void leaf(void) { ++calls; }

static void work(void) {
  leaf();
  if (getppid() > 0) ++calls;
  if (access("/", F_OK) == 0) ++calls;
}

void handle_nested(int number) {
  frame = __builtin_frame_address(0);
  calls += number;
  work();
}

void handle(int number) {
  frame = __builtin_frame_address(0);
  is_handled = 1;
  calls += number;
  work();
  if (nests) raise(SIGUSR2);
}

static struct Stack make_stack(int handlers) {
  const size_t kept = (size_t)sysconf(_SC_PAGESIZE);
  struct Stack stack;
  stack.size = (size_t)handlers * (getauxval(AT_MINSIGSTKSZ) + (size_t)bytes_max);
  stack.size = (stack.size + kAlignment - 1) / kAlignment * kAlignment;
  unsigned char* mapped = mmap(NULL, kept + stack.size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED || mprotect(mapped, kept, PROT_NONE) != 0) exit(2);
  stack.low = mapped + kept;
  return stack;
}

static void use_stack(const struct Stack* stack) {
  const stack_t now = {.ss_sp = stack->low, .ss_size = stack->size};
  if (sigaltstack(&now, NULL) != 0) exit(2);
}

static void paint(const struct Stack* stack) { memset(stack->low, kUnused, stack->size); }

static void take_signal(void) {
  sigset_t others;
  sigemptyset(&others);
  sigaddset(&others, own_signal == SIGUSR1 ? SIGURG : SIGUSR1);
  is_handled = 0; /* the signal has been blocked until now */
  /* In a program with -pg the profiler's signal arrives, too. */
  while (!is_handled) sigsuspend(&others);
}

static void measure(const struct Stack* stack, const char* who, const char* which) {
  const unsigned char* used = stack->low;
  while (*used == kUnused) ++used;
  if (frame - used <= bytes_max) {
    printf("%s, %s: little\n", who, which);
  } else {
    printf("%s, %s: %ld bytes\n", who, which, (long)(frame - used));
  }
}

static void take_later(const struct Stack* stack, const char* who) {
  for (int i = 0; i < 2; ++i) {
    paint(stack);
    raise(own_signal); /* blocked until it is taken */
    take_signal();
    measure(stack, who, "later");
  }
}

static pthread_barrier_t ready;

static void* thread(void* unused) {
  own_signal = SIGURG;
  const struct Stack stack = make_stack(2);
  use_stack(&stack);
  paint(&stack);
  pthread_barrier_wait(&ready);
  take_signal(); /* main's signal */
  measure(&stack, "thread, nested", "first");
  take_later(&stack, "thread, nested");
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  bytes_max = atol(argv[1]) + kOwn;
  waits = argc > 2;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGURG);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGURG, &action, NULL);
  action.sa_handler = handle_nested;
  sigaction(SIGUSR2, &action, NULL);
  own_signal = SIGUSR1;
  const struct Stack stack = make_stack(1);
  use_stack(&stack);
  pthread_t other;
  pthread_barrier_init(&ready, NULL, 2);
  if (pthread_create(&other, NULL, thread, NULL) != 0) return 2;
  pthread_barrier_wait(&ready);
  paint(&stack);
  puts("begins");
  fflush(stdout);
  if (!waits) raise(SIGUSR1);
  take_signal();
  measure(&stack, "main", "first");
  take_later(&stack, "main");
  nests = 1;
  pthread_kill(other, SIGURG);
  pthread_join(other, NULL);
  printf("%ld calls\n", calls);
  return 7;
}
