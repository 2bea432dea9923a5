#ifndef _SYS_TIME_H
#define _SYS_TIME_H
#include <time.h>
struct timeval { long tv_sec; long tv_usec; };
struct timezone { int tz_minuteswest; int tz_dsttime; };
int gettimeofday(struct timeval *when, struct timezone *zone);
#endif
