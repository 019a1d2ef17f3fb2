/* A caller's mistake is counted and told, never acted upon: a test asserts that there was none. */
#ifndef FAULT_H
#define FAULT_H

void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fake_faults(void);
void reset_processes(void);
void reset_foundation(void);
void reset_registry(void);

#endif
