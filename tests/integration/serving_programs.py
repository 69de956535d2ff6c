"""Programs that wait for work, and programs that wait for something else."""

# A server with epoll that answers every client, until it is killed.
EPOLL_SERVER = r"""
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void answer(int from) {
  char text[64];
  const long size = read(from, text, sizeof text);
  if (size <= 0) close(from);
  volatile unsigned x = 0;
  for (int i = 0; i < 50000; ++i) x += i;
  if (size > 0 && write(from, text, size) != size) close(from);
}

int main(void) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof name;
  if (bind(listener, (struct sockaddr*)&name, size) != 0) return 1;
  listen(listener, 8);
  getsockname(listener, (struct sockaddr*)&name, &size);
  printf("%d\n", ntohs(name.sin_port));
  fflush(stdout);
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = listener}};
  epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    const int count = epoll_wait(set, &event, 1, -1);
    if (count <= 0) continue;
    if (event.data.fd != listener) {
      answer(event.data.fd);
      continue;
    }
    event.data.fd = accept(listener, NULL, NULL);
    epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event);
  }
}
"""

# Asks the server at the port (argument 1) as often as it is told (argument 2), without waiting for
# answers: another process reads these.
FLOOD = r"""
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons(atoi(arguments[1]))};
  if (connect(server, (struct sockaddr*)&name, sizeof name) != 0) return 1;
  const long size = 64 * atol(arguments[2]);
  char text[4096] = "question";
  if (fork() == 0) {
    long sent = 0;
    while (sent < size) {
      const long now = write(server, text, size - sent < 4096 ? size - sent : 4096);
      if (now <= 0) _exit(1);
      sent += now;
    }
    _exit(0);
  }
  for (long got = 0, now; got < size; got += now) {
    now = read(server, text, sizeof text);
    if (now <= 0) return 1;
  }
  return 0;
}
"""

# Polls for something to read, reads it, and writes it, again and again: from standard input, or
# from the files of its arguments.
COPIER = r"""
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static int copy(int from) {
  char text[64];
  for (;;) {
    struct pollfd set = {from, POLLIN, 0};
    if (poll(&set, 1, -1) != 1) return 1;
    const long size = read(from, text, sizeof text);
    if (size <= 0) return size != 0;
    if (write(1, text, size) != size) return 1;
  }
}

int main(int count, char** arguments) {
  int status = count == 1 ? copy(0) : 0;
  for (int i = 1; i < count; ++i) status |= copy(open(arguments[i], O_RDONLY));
  return status;
}
"""

# Threads that do something in one of several shapes (argument 1): "pool": three take jobs from a
# queue that the first thread fills now and then; "convoy": four need one mutex; "semaphore": the
# same with a semaphore as the lock; "turns": the first thread and another one wait for each other.
THREADS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static sem_t semaphore, there, back;
static int jobs, is_over;

static void work(int turns) {
  volatile unsigned x = 0;
  for (int i = 0; i < turns * 1000; ++i) x += i;
}

static void* take_jobs(void* unused) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (jobs == 0 && !is_over) pthread_cond_wait(&filled, &mutex);
    const int has_job = jobs > 0;
    if (has_job) --jobs;
    pthread_mutex_unlock(&mutex);
    if (!has_job) return unused;
    work(200);
  }
}
static void* take_mutex(void* unused) {
  for (int i = 0; i < 300; ++i) {
    pthread_mutex_lock(&mutex);
    work(300);
    pthread_mutex_unlock(&mutex);
    work(20);
  }
  return unused;
}
static void* take_semaphore(void* unused) {
  for (int i = 0; i < 300; ++i) {
    sem_wait(&semaphore);
    work(300);
    sem_post(&semaphore);
    work(20);
  }
  return unused;
}
static void* answer(void* unused) {
  for (int i = 0; i < 300; ++i) {
    sem_wait(&there);
    work(300);
    sem_post(&back);
  }
  return unused;
}

int main(int count, char** arguments) {
  pthread_t threads[4];
  const char* shape = arguments[count - 1];
  sem_init(&semaphore, 0, 1);
  sem_init(&there, 0, 0);
  sem_init(&back, 0, 0);
  int made = 0;
  if (strcmp(shape, "pool") == 0) {
    while (made < 3) pthread_create(&threads[made++], NULL, take_jobs, NULL);
    for (int i = 0; i < 400; ++i) {
      usleep(500);
      pthread_mutex_lock(&mutex);
      ++jobs;
      pthread_cond_signal(&filled);
      pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    is_over = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&mutex);
  } else if (strcmp(shape, "convoy") == 0) {
    while (made < 4) pthread_create(&threads[made++], NULL, take_mutex, NULL);
  } else if (strcmp(shape, "semaphore") == 0) {
    while (made < 4) pthread_create(&threads[made++], NULL, take_semaphore, NULL);
  } else {
    pthread_create(&threads[made++], NULL, answer, NULL);
    for (int i = 0; i < 300; ++i) {
      sem_post(&there);
      sem_wait(&back);
    }
  }
  for (int i = 0; i < made; ++i) pthread_join(threads[i], NULL);
  return 0;
}
"""

# Asks the server at the port (argument 1) as often as it is told (argument 2), one question after
# the other, each when the server (its process number is argument 3) sleeps.
CLIENT = r"""
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "asleep.h"

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons(atoi(arguments[1]))};
  if (connect(server, (struct sockaddr*)&name, sizeof name) != 0) return 1;
  char text[64] = "question";
  for (int i = 0; i < atoi(arguments[2]); ++i) {
    wait_for_sleep_in(atoi(arguments[3]), -1);
    if (write(server, text, 8) != 8 || read(server, text, sizeof text) <= 0) return 1;
  }
  return 0;
}
"""
