#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

static int faults;
static char first[256];

void fault(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (faults++ == 0) {
        vsnprintf(first, sizeof first, format, arguments);
    }
    va_end(arguments);
}

int fake_faults(void) { return faults; }
const char *fake_first_fault(void) { return faults ? first : ""; }

void fake_reset(void) {
    faults = 0;
    reset_processes();
    reset_registry();
    reset_foundation();
}
