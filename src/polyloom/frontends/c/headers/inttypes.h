#ifndef _INTTYPES_H
#define _INTTYPES_H
#include <stdint.h>
#define PRId32 "d"
#define PRId64 "ld"
#define PRIu32 "u"
#define PRIu64 "lu"
#endif
