// Threads write events whose content the test knows beforehand, and only as many as the
// test permits, so that it reads while they write (test_second_reader.py).
//   known_events CONTROL THREADS
// CONTROL is a file that the test maps: how many events each thread may have written by
// now, a futex, where UINT32_MAX tells it to end; and from byte 64 on how many each
// thread has written.
//
// Event n of a thread is in a frame of its own. Its fields are the thread, n, a number
// made of both, and a text whose length varies. Every kEach events the thread defines
// another event, and writes that one from then on.
#include <arctrace/arctrace.h>
#include <arctrace/format.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kEach = 50, kPause = 2000, kTextMax = 40, kThreadsMax = 64, kControlSize = 4096 };

struct control {
  uint32_t limit;
  uint32_t reserved[15];
  uint64_t written[kThreadsMax];
};

static struct control* control;

static uint32_t define_event(uint32_t thread, uint32_t number) {
  const struct arctrace_field fields[] = {{"thread", ARCTRACE_FIELD_U32},
                                          {"number", ARCTRACE_FIELD_U32},
                                          {"product", ARCTRACE_FIELD_U64},
                                          {"text", ARCTRACE_FIELD_STRING}};
  char name[64];
  snprintf(name, sizeof name, "event %u of %u", number / kEach, thread);
  return arctrace_define_event(name, 0, fields, 4);
}

static size_t fill_payload(unsigned char* payload, uint32_t thread, uint32_t number) {
  const uint64_t product = (uint64_t)(number + 1) * (thread + 1) * 0x9E3779B97F4A7C15u;
  const uint32_t size = (number * 7 + thread) % kTextMax;
  memcpy(payload, &thread, 4);
  memcpy(payload + 4, &number, 4);
  memcpy(payload + 8, &product, 8);
  memcpy(payload + 16, &size, 4);
  memset(payload + 20, 'a' + (int)(number % 26), size);
  return 20 + size;
}

static void* write_events(void* argument) {
  const uint32_t thread = (uint32_t)(uintptr_t)argument;
  const uint64_t frame = arctrace_name_key(arctrace_define_name("step"));
  unsigned char payload[20 + kTextMax];
  uint32_t event = 0;
  for (uint32_t number = 0;; ++number) {
    uint32_t limit;
    while ((limit = __atomic_load_n(&control->limit, __ATOMIC_ACQUIRE)) <= number)
      syscall(SYS_futex, &control->limit, FUTEX_WAIT, limit, NULL, NULL, 0);
    if (limit == UINT32_MAX) return NULL;
    if (number % kEach == 0) event = define_event(thread, number);
    arctrace_enter(frame);
    arctrace_write(event, payload, fill_payload(payload, thread, number));
    arctrace_exit(frame);
    __atomic_store_n(&control->written[thread], (uint64_t)number + 1, __ATOMIC_RELEASE);
    // Lasts about a microsecond, so that writing the permitted events takes as long as
    // reading them.
    for (int i = 0; i < kPause; ++i) __asm__ volatile("");
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int file = open(argv[1], O_RDWR);
  void* memory = mmap(NULL, kControlSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 2;
  control = memory;
  const uint32_t count = (uint32_t)atoi(argv[2]);
  if (count > kThreadsMax) return 2;
  pthread_t threads[kThreadsMax];
  for (uint32_t i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, write_events, (void*)(uintptr_t)i) != 0)
      return 2;
  }
  for (uint32_t i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  return 0;
}
