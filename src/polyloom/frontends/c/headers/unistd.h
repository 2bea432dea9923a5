#ifndef _UNISTD_H
#define _UNISTD_H
#include <stddef.h>
int usleep(unsigned int microseconds);
#endif
