// The program of test_view.py and test_page.py: three threads that take turns at a lock,
// calls of a name that does harm (argument 1) and of a name of a megabyte, and a child
// process. Argument 2: how many turns each thread takes, some twelve calls each; then
// there is no child, and none has a lock or a pause.
#include <arctrace/arctrace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 3, kTurns = 100, kHugeName = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char* harmful_name;
static int many_turns;
static uint64_t harmful, huge;

__attribute__((no_instrument_function)) static uint64_t key_of(const char* name) {
  return UINT64_C(1) << 63 | arctrace_define_name(name);
}

static void leaf(int turns) {
  volatile int sum = 0;
  arctrace_enter(harmful);
  for (int i = 0; i < turns; ++i) sum += i;
  arctrace_exit(harmful);
}
static void inner(int turns) { leaf(turns * 10); }
static void step(int turn) {
  for (int i = 0; i < 3; ++i) inner(turn % 50);
}
static void outer(int turn) {
  if (many_turns != 0) return step(turn % 4);
  pthread_mutex_lock(&lock);
  step(turn);
  if (turn % 20 == 0) usleep(300);
  pthread_mutex_unlock(&lock);
}
static void* work(void* turns) {
  arctrace_thread_name(harmful_name);
  for (int i = 0; i < *(const int*)turns; ++i) outer(i);
  arctrace_enter(huge);
  arctrace_exit(huge);
  return NULL;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  harmful_name = arguments[1];
  if (count > 2) many_turns = atoi(arguments[2]);
  char* name = calloc(1, kHugeName + 1);
  memset(name, 'n', kHugeName);
  harmful = key_of(harmful_name);
  huge = key_of(name);
  if (many_turns == 0 && fork() == 0) {
    for (int i = 0; i < 5; ++i) outer(i);
    _exit(0);
  }
  wait(NULL);
  pthread_t threads[kThreads];
  int turns[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    turns[i] = many_turns != 0 ? many_turns : kTurns * (i + 1);
    pthread_create(&threads[i], NULL, work, &turns[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}
