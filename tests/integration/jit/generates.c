/* Generates machine code and runs it. The API gets the code's addresses; the names stand
 * in a file, where any tool may read them. Arguments:
 *   map         names in /tmp/perf-PID.map: two functions
 *   dump        names in ./jit-PID.dump: one that is replaced at its address, then moved
 *   unmapped    as dump, then waits for a line and takes the dump out of its memory
 *   kill        as dump, then waits for a line and ends by SIGKILL
 *   wait        as map, then waits for a line
 *   fork        as map, and a child that calls one of them, and generates none
 * Prints its pid and what the generated functions returned. */
#define _GNU_SOURCE
#include <arctrace/arctrace.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kCodeSize = 24 };

static char* pages;
static FILE* dump;
static void* marker;

/* The generated code calls this, which makes a library call below it. */
__attribute__((noinline)) static long step(void) { return getppid() > 0; }

/* sub rsp, 8; mov rax, step; call rax; add eax, result; add rsp, 8; ret */
static char* generate(size_t offset, int result) {
  unsigned char code[kCodeSize] = {0x48, 0x83, 0xec, 0x08, 0x48, 0xb8};
  long (*called)(void) = step;
  memcpy(code + 6, &called, 8);
  memcpy(code + 14, "\xff\xd0\x83\xc0", 4);
  code[18] = (unsigned char)result;
  memcpy(code + 19, "\x48\x83\xc4\x08\xc3", 5);
  mprotect(pages, 2 * kPage, PROT_READ | PROT_WRITE);
  memcpy(pages + offset, code, sizeof code);
  mprotect(pages, 2 * kPage, PROT_READ | PROT_EXEC);
  return pages + offset;
}

static void run(char* code, int times) {
  int (*function)(void);
  memcpy(&function, &code, sizeof function);
  int sum = 0;
  for (int i = 0; i < times; ++i) {
    arctrace_enter((uintptr_t)code);
    sum += function();
    arctrace_exit((uintptr_t)code);
  }
  printf("%d\n", sum);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put_u32(uint32_t value) { fwrite(&value, 4, 1, dump); }
static void put_u64(uint64_t value) { fwrite(&value, 8, 1, dump); }

static void open_dump(void) {
  char name[64];
  snprintf(name, sizeof name, "jit-%d.dump", (int)getpid());
  const int fd = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  dump = fdopen(fd, "w");
  put_u32(0x4A695444), put_u32(1), put_u32(40), put_u32(62), put_u32(0);
  put_u32((uint32_t)getpid()), put_u64(now_ns()), put_u64(0);
  fflush(dump);
  marker = mmap(NULL, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  if (marker == MAP_FAILED) exit(77);
}

static void put_head(uint32_t id, size_t body) {
  put_u32(id), put_u32((uint32_t)(16 + body)), put_u64(now_ns());
  put_u32((uint32_t)getpid()), put_u32((uint32_t)gettid());
}

static void write_loaded(char* code, const char* name, uint64_t index) {
  put_head(0, 40 + strlen(name) + 1 + kCodeSize);
  put_u64((uintptr_t)code), put_u64((uintptr_t)code), put_u64(kCodeSize), put_u64(index);
  fwrite(name, strlen(name) + 1, 1, dump);
  fwrite(code, kCodeSize, 1, dump);
  fflush(dump);
}

static void write_moved(char* from, char* to, uint64_t index) {
  put_head(1, 48);
  put_u64((uintptr_t)to), put_u64((uintptr_t)from), put_u64((uintptr_t)to);
  put_u64(kCodeSize), put_u64(index);
  fflush(dump);
}

static void replace_and_move(void) {
  open_dump();
  char* first = generate(0, 1);
  write_loaded(first, "first", 1);
  run(first, 3);
  char* second = generate(0, 2);
  write_loaded(second, "second", 2);
  run(second, 5);
  char* moved = generate(kPage, 2);
  write_moved(second, moved, 2);
  run(moved, 2);
}

static void with_map(void) {
  char* first = generate(0, 1);
  char* second = generate(256, 2);
  char name[64];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(name, "w");
  fprintf(map, "%lx %x LazyCompile:*first file.js:1\n", (long)first, kCodeSize);
  fprintf(map, "%lx %x second\n", (long)second, kCodeSize);
  fclose(map);
  run(first, 3);
  run(second, 4);
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  pages =
      mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("%d\n", (int)getpid());
  const int is_map = !strcmp(way, "map") || !strcmp(way, "wait") || !strcmp(way, "fork");
  is_map ? with_map() : replace_and_move();
  fflush(stdout);
  if (!strcmp(way, "kill") || !strcmp(way, "wait") || !strcmp(way, "unmapped")) getchar();
  if (!strcmp(way, "unmapped")) munmap(marker, kPage);
  if (!strcmp(way, "kill")) raise(SIGKILL);
  if (!strcmp(way, "fork")) {
    if (fork() == 0) {
      run(pages + 256, 6);
      fflush(stdout);
      _exit(0);
    }
    wait(NULL);
  }
  return 0;
}
