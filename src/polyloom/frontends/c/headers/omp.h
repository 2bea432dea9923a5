#ifndef _OMP_H
#define _OMP_H
double omp_get_wtime(void);
int omp_get_max_threads(void);
#endif
