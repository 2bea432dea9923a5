#ifndef _CTYPE_H
#define _CTYPE_H
#include <stddef.h>
int isdigit(int);
#endif
