void f(int n, double a[n]) { a[0] = 0; }
void g(int n, double a[n]) { a[0] = 1; }
