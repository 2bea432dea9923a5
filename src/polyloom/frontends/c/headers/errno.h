#ifndef _ERRNO_H
#define _ERRNO_H
#include <stddef.h>
extern int errno;
#endif
