// Makes fixture.c a program at fixed addresses.
extern int fixture_add(int a, int b);
int main(void) { return fixture_add(-1, 1); }
