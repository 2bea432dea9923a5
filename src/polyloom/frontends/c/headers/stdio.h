#ifndef _STDIO_H
#define _STDIO_H
#include <stddef.h>
typedef struct _polyloom_file FILE;
extern FILE *stdin;
extern FILE *stdout;
extern FILE *stderr;
#define EOF (-1)
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int sprintf(char *text, const char *format, ...);
int snprintf(char *text, size_t size, const char *format, ...);
int scanf(const char *format, ...);
int fscanf(FILE *file, const char *format, ...);
int puts(const char *text);
int fputs(const char *text, FILE *file);
int putchar(int character);
int fputc(int character, FILE *file);
int getchar(void);
FILE *fopen(const char *name, const char *mode);
int fclose(FILE *file);
int fflush(FILE *file);
size_t fread(void *data, size_t size, size_t count, FILE *file);
size_t fwrite(const void *data, size_t size, size_t count, FILE *file);
void perror(const char *text);
#endif
