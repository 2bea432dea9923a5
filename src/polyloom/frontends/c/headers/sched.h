#ifndef _SCHED_H
#define _SCHED_H
#endif
