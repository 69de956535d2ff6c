/* System calls that the kernel ends, restarts or continues in different ways when a
 * thread is stopped. Half of them wait for a time, the others for what another thread
 * does. */
#ifndef ARCTRACE_TESTS_ATTACH_WAITING_CALLS_H
#define ARCTRACE_TESTS_ATTACH_WAITING_CALLS_H

#include <time.h>

enum { kWaitMs = 60, kHelpMs = 20 };

struct waiting_call {
  const char* name;
  int (*wait)(void);  /* returns -1 and sets errno, if it fails */
  void (*help)(void); /* while it waits; null: it needs none */
  int is_timed;       /* it waits for kWaitMs */
};

/* The last call is pause(). */
extern const struct waiting_call waiting_calls[];
extern const int waiting_calls_count;

/* Must be called before the calls are made, and after the last one. */
void prepare_waiting_calls(void);
void end_waiting_calls(void);

/* Takes the locks for a while that other threads wait for. */
void hold_locks(void);

/* Whether a thread is about to call pause(), or is in it. */
int is_pausing(void);

void sleep_ms(int ms);
long long now_ns(clockid_t clock);

#endif
