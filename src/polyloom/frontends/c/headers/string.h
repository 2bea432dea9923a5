#ifndef _STRING_H
#define _STRING_H
#include <stddef.h>
void *memset(void *target, int value, size_t size);
void *memcpy(void *target, const void *source, size_t size);
void *memmove(void *target, const void *source, size_t size);
int memcmp(const void *first, const void *second, size_t size);
size_t strlen(const char *text);
int strcmp(const char *first, const char *second);
int strncmp(const char *first, const char *second, size_t size);
char *strcpy(char *target, const char *source);
char *strcat(char *target, const char *source);
#endif
