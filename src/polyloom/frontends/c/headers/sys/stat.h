#ifndef _SYS_STAT_H
#define _SYS_STAT_H
#include <sys/types.h>
struct stat { mode_t st_mode; off_t st_size; long st_mtime; };
#define S_ISDIR(mode) (((mode) & 0170000) == 0040000)
#define S_ISREG(mode) (((mode) & 0170000) == 0100000)
int stat(const char *name, struct stat *found);
int fstat(int file, struct stat *found);
int mkdir(const char *name, mode_t mode);
#endif
