#ifndef _STDLIB_H
#define _STDLIB_H
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *pointer, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **pointer, size_t alignment, size_t size);
void free(void *pointer);
void exit(int status);
void abort(void);
int rand(void);
void srand(unsigned int seed);
int atoi(const char *text);
long atol(const char *text);
double atof(const char *text);
long strtol(const char *text, char **end, int base);
double strtod(const char *text, char **end);
char *getenv(const char *name);
int abs(int);
long labs(long);
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
#endif
