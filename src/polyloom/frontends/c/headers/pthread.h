#ifndef _PTHREAD_H
#define _PTHREAD_H
#include <sched.h>
#include <time.h>
typedef unsigned long pthread_t;
typedef unsigned int pthread_key_t;
typedef int pthread_once_t;
typedef struct { long state[8]; } pthread_attr_t, pthread_mutex_t, pthread_mutexattr_t, pthread_cond_t,
    pthread_condattr_t, pthread_rwlock_t, pthread_rwlockattr_t, pthread_barrier_t, pthread_barrierattr_t;
#define PTHREAD_MUTEX_INITIALIZER { { 0 } }
#define PTHREAD_COND_INITIALIZER { { 0 } }
#define PTHREAD_CREATE_JOINABLE 0
#define PTHREAD_CREATE_DETACHED 1
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*start)(void *), void *argument);
int pthread_join(pthread_t thread, void **result);
void pthread_exit(void *result);
pthread_t pthread_self(void);
int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *how);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_barrier_wait(pthread_barrier_t *barrier);
#endif
