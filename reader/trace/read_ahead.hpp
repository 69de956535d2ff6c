// A thread that reads ahead of whoever takes what it reads, the cursor. The reader's core
// hands records out by calling; callers of the C interface ask for them, one by one, and
// an exporter works on some while others are read.
#pragma once

#include <absl/status/status.h>
#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace arctrace::reader {

// A queue of few batches between the two threads. `Batch` has clear(), which keeps its
// memory. One end is put(), in the thread; the rest is for the cursor.
template <class Batch>
class ReadAhead {
 public:
  using Produce = std::function<absl::Status(ReadAhead&)>;

  // Runs `produce` in the thread. Throws std::system_error if there can be none.
  explicit ReadAhead(Produce produce) {
    // Signals are for the program's own threads, but for those by which a thread's own
    // fault shows: a mapped buffer may be cut off (src/buffer/truncation_guard.hpp).
    sigset_t all, before;
    sigfillset(&all);
    for (const int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this, produce = std::move(produce)] { run(produce); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead() { stop(); }

  // Hands `batch` to the cursor and makes it empty. Waits for room. False: the cursor
  // wants no more.
  bool put(Batch& batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return full_.size() < kBatches || is_closed_; });
    if (is_closed_) return false;
    full_.push_back(std::move(batch));
    if (used_.empty()) {
      batch = Batch();
    } else {
      batch = std::move(used_.back());
      used_.pop_back();
    }
    changed_.notify_all();
    return true;
  }

  // Waits for the next batch, in exchange for the last one. False: there is none, and
  // status() is final.
  bool take(Batch& batch) {
    batch.clear();
    std::unique_lock lock(mutex_);
    used_.push_back(std::move(batch));
    batch = Batch();
    changed_.wait(lock, [&] { return !full_.empty() || has_ended_; });
    if (full_.empty()) return false;
    batch = std::move(full_.front());
    full_.pop_front();
    changed_.notify_all();
    return true;
  }

  // Ends the thread.
  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // What `produce` returned. REQUIRES: stop(), or take() has returned false.
  const absl::Status& status() const { return status_; }

 private:
  static constexpr size_t kBatches = 4;

  void run(const Produce& produce) {
    absl::Status status;
    try {
      status = produce(*this);
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError("no memory");
    } catch (const std::exception& error) {
      status = absl::InternalError(error.what());
    }
    const std::scoped_lock lock(mutex_);
    status_ = std::move(status);
    has_ended_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> full_;
  std::vector<Batch> used_;
  bool is_closed_ = false;  // the cursor wants no more
  bool has_ended_ = false;  // the thread puts no more
  absl::Status status_;
  std::thread thread_;
};

}  // namespace arctrace::reader
