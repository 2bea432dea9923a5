#ifndef _STDARG_H
#define _STDARG_H
typedef struct __polyloom_arguments *va_list;
#define va_start(list, last) ((void)(list))
#define va_end(list) ((void)(list))
#define va_copy(to, from) ((to) = (from))
#define va_arg(list, type) (*(type *)(list))
#endif
