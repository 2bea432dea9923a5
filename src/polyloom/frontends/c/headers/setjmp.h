#ifndef _SETJMP_H
#define _SETJMP_H
typedef long jmp_buf[32];
int setjmp(jmp_buf place);
void longjmp(jmp_buf place, int value);
#endif
