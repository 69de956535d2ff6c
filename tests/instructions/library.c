/* A library for library_calls.c, whose functions do nothing. */
void library_first(void);
void library_second(void);
void library_first(void) {}
void library_second(void) {}
