/* waits: threads make system calls that wait, one call a thread, until there is a file
 * "stop". Each call must be as it is when nobody joins the program: its result is the
 * same, it never fails with EINTR, and it does not end before its time. Prints a row for
 * each call: its name, and each different way in which it ended, once. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"
#include "waiting_calls.h"

enum { kRowsMax = 32, kWaysMax = 8 };

static struct row {
  const struct waiting_call* call;
  atomic_long waits;
  int ways;
  char way[kWaysMax][64];
  pthread_t thread;
  sem_t begins, over; /* of a wait that needs help */
} rows[kRowsMax];

static void note(struct row* row, const char* way) {
  for (int i = 0; i < row->ways; ++i) {
    if (strcmp(row->way[i], way) == 0) return;
  }
  if (row->ways < kWaysMax) {
    snprintf(row->way[row->ways++], sizeof *row->way, "%s", way);
  }
}

static void* waits(void* argument) {
  struct row* const row = argument;
  while (!is_stopped()) {
    if (row->call->help != NULL) sem_post(&row->begins);
    const long long begin = now_ns(CLOCK_MONOTONIC);
    const int result = row->call->wait();
    const int error = result == -1 ? errno : 0;
    const long long end = now_ns(CLOCK_MONOTONIC);
    char way[64];
    const int is_short = row->call->is_timed && end - begin < (kWaitMs - 1) * 1000000LL;
    snprintf(way, sizeof way, "%d%s%s%s", result, error != 0 ? " " : "",
             error != 0 ? strerrorname_np(error) : "", is_short ? " early" : "");
    note(row, way);
    ++row->waits;
    if (row->call->help != NULL) sem_wait(&row->over);
  }
  return NULL;
}

static void* helps(void* argument) {
  struct row* const row = argument;
  for (;;) {
    while (sem_wait(&row->begins) != 0) continue;
    sleep_ms(kHelpMs);
    row->call->help();
    sem_post(&row->over);
  }
  return NULL;
}

static atomic_int all_over;

static void* holds_locks(void* unused) {
  while (!all_over) {
    hold_locks();
    sleep_ms(1);
  }
  return unused;
}

/* The signal may come just before the call, so it is sent until the call has ended. */
static void* ends_pause(void* argument) {
  struct row* const row = argument;
  while (!all_over) {
    const long waits_before = row->waits;
    sleep_ms(kHelpMs);
    if (is_pausing() && row->waits == waits_before) pthread_kill(row->thread, SIGUSR2);
  }
  return NULL;
}

int main(void) {
  prepare_waiting_calls();
  pthread_t helper, locks, pauses;
  for (int i = 0; i < waiting_calls_count; ++i) {
    struct row* const row = &rows[i];
    row->call = &waiting_calls[i];
    sem_init(&row->begins, 0, 0);
    sem_init(&row->over, 0, 0);
    if (pthread_create(&row->thread, NULL, waits, row) != 0) return EXIT_FAILURE;
    if (row->call->help != NULL) pthread_create(&helper, NULL, helps, row);
  }
  pthread_create(&locks, NULL, holds_locks, NULL);
  pthread_create(&pauses, NULL, ends_pause, &rows[waiting_calls_count - 1]);
  puts("begins");
  fflush(stdout);
  for (int i = 0; i < waiting_calls_count; ++i) pthread_join(rows[i].thread, NULL);
  all_over = 1;
  for (int i = 0; i < waiting_calls_count; ++i) {
    printf("%s:", rows[i].call->name);
    for (int k = 0; k < rows[i].ways; ++k)
      printf(" %s%s", k > 0 ? "| " : "", rows[i].way[k]);
    puts("");
  }
  end_waiting_calls();
  return 7;
}
