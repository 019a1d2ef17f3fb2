/* CoreFoundation objects with real reference counts, made from templates that the test has put in. */
#ifndef FOUNDATION_H
#define FOUNDATION_H

#include <stddef.h>
#include <stdint.h>

enum kind { STRING, NUMBER, BOOLEAN, DATA, ARRAY, DICTIONARY, REAL, DATE, KINDS };

struct object {
    uint64_t magic;
    int references;
    enum kind kind;
    int64_t number;     /* a REAL's are the bits of its double */
    size_t length;      /* of bytes, or how many items; a dictionary's are key, value, key, value */
    union { char *bytes; struct object **items; };
};

struct object *make_string(const char *text, size_t length);
struct object *make_from_template(int number);
struct object *checked(const void *reference, const char *who);
void CFRelease(const void *reference);

#endif
