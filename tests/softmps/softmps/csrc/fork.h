// fork: no lock is held in the child, and nothing waits for threads that exist only in the parent.
#pragma once

#include "allocator.h"
#include "gate.h"

#include <pthread.h>

namespace softmps {

inline void before_fork() {
  gate().lock.lock();
  allocator().lock.lock();
  graphs().lock.lock();
  queue().lock.lock();
}

inline void unlock_after_fork() {
  queue().lock.unlock();
  graphs().lock.unlock();
  allocator().lock.unlock();
  gate().lock.unlock();
}

inline void in_child() {
  new (&stream()) std::recursive_mutex;  // another thread's op may have held it
  gate().keep_only_this_thread();
  queue().forget_after_fork();
  unlock_after_fork();
}

inline void survive_fork() { pthread_atfork(&before_fork, &unlock_after_fork, &in_child); }

}  // namespace softmps
