#ifndef _STRINGS_H
#define _STRINGS_H
#include <stddef.h>
int bcmp(const void *first, const void *second, size_t size);
void bcopy(const void *from, void *to, size_t size);
void bzero(void *data, size_t size);
int strcasecmp(const char *first, const char *second);
int strncasecmp(const char *first, const char *second, size_t size);
#endif
