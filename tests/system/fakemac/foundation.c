#include "foundation.h"

#include "fault.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Far above 4 GB, and negative when cut to a 32-bit int: what was cut points nowhere near. Memory is never used
 * twice, so that whatever comes after a release is noticed. */
#define ARENA ((void *)0x5100c0de0000)
#define ARENA_SIZE ((size_t)1 << 32)
#define LIVE 0x11feed0b1ec7ull
#define DEAD 0xdeadull
enum { MAX_TEMPLATES = 4096, UTF8 = 0x08000100, SINT64 = 4, DOUBLE = 13 };

struct template {
    enum kind kind;
    int64_t number;
    char *bytes;
    size_t length;
    int *items;
};

static const unsigned long type_ids[KINDS] = {7, 22, 21, 20, 19, 18, 22, 42};
static struct template templates[MAX_TEMPLATES];
static int template_count, live, made;
static int languages = -1;
static char *arena;
static size_t arena_used;

void reset_foundation(void) {
    for (int i = 0; i < template_count; i++) {
        free(templates[i].bytes);
        free(templates[i].items);
    }
    template_count = live = made = 0;
    languages = -1;
    if (arena) {
        munmap(arena, ARENA_SIZE);
        arena = NULL;
    }
    arena_used = 0;
}

int fake_live_objects(void) { return live; }
int fake_made_objects(void) { return made; }
int fake_is_high(void) { return (uintptr_t)arena > UINT32_MAX; }

int fake_template(int kind, int64_t number, const char *bytes, size_t length) {
    char *copy = memcpy(malloc(length + 1), bytes, length);
    templates[template_count] = (struct template){kind, number, copy, length, NULL};
    return template_count++;
}

void fake_append(int container, int item) {
    struct template *to = &templates[container];
    to->items = realloc(to->items, (to->length + 1) * sizeof(int));
    to->items[to->length++] = item;
}

void fake_languages(int template) { languages = template; }

static void *take(size_t size) {
    if (arena == NULL) {
        arena = mmap(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    size = (size + 15) & ~(size_t)15;
    if (arena == MAP_FAILED || arena_used + size > ARENA_SIZE) {
        abort();
    }
    arena_used += size;
    return arena + arena_used - size;
}

static struct object *make(enum kind kind, int64_t number, size_t length, size_t item_size) {
    struct object *object = take(sizeof *object);
    *object = (struct object){LIVE, 1, kind, number, length, {take(length * item_size + 1)}};
    live++;
    made++;
    return object;
}

struct object *make_string(const char *text, size_t length) {
    struct object *object = make(STRING, 0, length, 1);
    memcpy(object->bytes, text, length);
    return object;
}

struct object *make_from_template(int number) {
    const struct template *from = &templates[number];
    int is_container = from->kind == ARRAY || from->kind == DICTIONARY;
    struct object *object = make(from->kind, from->number, from->length, is_container ? sizeof(void *) : 1);
    if (!is_container) {
        memcpy(object->bytes, from->bytes, from->length);
    }
    for (size_t i = 0; is_container && i < from->length; i++) {
        object->items[i] = make_from_template(from->items[i]);
    }
    return object;
}

struct object *checked(const void *reference, const char *who) {
    const char *place = reference;
    int is_ours = arena && place >= arena && place < arena + arena_used && (uintptr_t)place % 16 == 0;
    struct object *object = is_ours ? (struct object *)place : NULL;
    if (object && object->magic == LIVE) {
        return object;
    }
    fault(object && object->magic == DEAD ? "%s: released before: %p" : "%s: no object: %p", who, reference);
    return NULL;
}

static struct object *expect(const void *reference, enum kind kind, const char *who) {
    struct object *object = checked(reference, who);
    if (object && type_ids[object->kind] != type_ids[kind]) {
        fault("%s: of another type", who);
        return NULL;
    }
    return object;
}

void CFRelease(const void *reference) {
    struct object *object = checked(reference, "CFRelease");
    if (object == NULL || --object->references > 0) {
        return;
    }
    object->magic = DEAD;
    live--;
    if (object->kind == ARRAY || object->kind == DICTIONARY) {
        for (size_t i = 0; i < object->length; i++) {
            CFRelease(object->items[i]);
        }
    }
}

unsigned long CFArrayGetTypeID(void) { return type_ids[ARRAY]; }
unsigned long CFBooleanGetTypeID(void) { return type_ids[BOOLEAN]; }
unsigned long CFDataGetTypeID(void) { return type_ids[DATA]; }
unsigned long CFDictionaryGetTypeID(void) { return type_ids[DICTIONARY]; }
unsigned long CFNumberGetTypeID(void) { return type_ids[NUMBER]; }
unsigned long CFStringGetTypeID(void) { return type_ids[STRING]; }

unsigned long CFGetTypeID(const void *reference) {
    struct object *object = checked(reference, "CFGetTypeID");
    return object ? type_ids[object->kind] : 0;
}

long CFArrayGetCount(const void *reference) {
    struct object *object = expect(reference, ARRAY, "CFArrayGetCount");
    return object ? (long)object->length : 0;
}

const void *CFArrayGetValueAtIndex(const void *reference, long index) {
    struct object *object = expect(reference, ARRAY, "CFArrayGetValueAtIndex");
    if (object && (index < 0 || index >= (long)object->length)) {
        fault("CFArrayGetValueAtIndex: %ld", index);
        return NULL;
    }
    return object ? object->items[index] : NULL;
}

unsigned char CFBooleanGetValue(const void *reference) {
    struct object *object = expect(reference, BOOLEAN, "CFBooleanGetValue");
    return object && object->number;
}

const void *CFDataGetBytePtr(const void *reference) {
    struct object *object = expect(reference, DATA, "CFDataGetBytePtr");
    return object ? object->bytes : NULL;
}

long CFDataGetLength(const void *reference) {
    struct object *object = expect(reference, DATA, "CFDataGetLength");
    return object ? (long)object->length : 0;
}

long CFDictionaryGetCount(const void *reference) {
    struct object *object = expect(reference, DICTIONARY, "CFDictionaryGetCount");
    return object ? (long)object->length / 2 : 0;
}

void CFDictionaryGetKeysAndValues(const void *reference, const void **keys, const void **values) {
    struct object *object = expect(reference, DICTIONARY, "CFDictionaryGetKeysAndValues");
    int is_lost = fake_faults() > 0; /* who counted wrongly has no room for them */
    for (size_t i = 0; object && !is_lost && i < object->length / 2; i++) {
        keys[i] = object->items[2 * i];
        values[i] = object->items[2 * i + 1];
    }
}

unsigned char CFNumberIsFloatType(const void *reference) {
    struct object *object = expect(reference, NUMBER, "CFNumberIsFloatType");
    return object && object->kind == REAL;
}

/* False where the value does not fit the type asked for; the nearest one is passed back all the same. */
unsigned char CFNumberGetValue(const void *reference, long type, void *value) {
    struct object *object = expect(reference, NUMBER, "CFNumberGetValue");
    if (type != SINT64 && type != DOUBLE) {
        fault("CFNumberGetValue: type %ld", type);
        return 0;
    }
    if (object == NULL) {
        return 0;
    }
    double real = (double)object->number;
    int64_t whole = object->number;
    if (object->kind == REAL) {
        memcpy(&real, &object->number, sizeof real);
        whole = real >= -0x1p63 && real < 0x1p63 ? (int64_t)real : INT64_MAX;
    }
    if (type == SINT64) {
        memcpy(value, &whole, sizeof whole);
        return object->kind == NUMBER || (whole != INT64_MAX && (double)whole == real);
    }
    memcpy(value, &real, sizeof real);
    return object->kind == REAL || (real < 0x1p63 && (int64_t)real == whole);
}

const void *CFStringCreateWithCString(const void *allocator, const char *text, uint32_t encoding) {
    if (allocator != NULL || encoding != UTF8) {
        fault("CFStringCreateWithCString: %p, encoding %x", allocator, encoding);
        return NULL;
    }
    return make_string(text, strlen(text));
}

/* In units of UTF-16, as always there. */
long CFStringGetLength(const void *reference) {
    struct object *object = expect(reference, STRING, "CFStringGetLength");
    long units = 0;
    for (size_t i = 0; object && i < object->length; i++) {
        unsigned char byte = (unsigned char)object->bytes[i];
        units += (byte & 0xc0) != 0x80;
        units += byte >= 0xf0;
    }
    return units;
}

unsigned char CFStringGetCString(const void *reference, char *buffer, long size, uint32_t encoding) {
    struct object *object = expect(reference, STRING, "CFStringGetCString");
    if (encoding != UTF8) {
        fault("CFStringGetCString: encoding %x", encoding);
    }
    if (object == NULL || object->number || (long)object->length + 1 > size) {
        return 0; /* a string with a number is one that cannot be converted */
    }
    memcpy(buffer, object->bytes, object->length);
    buffer[object->length] = '\0';
    return 1;
}

/* In System Settings: an array of strings. */
const void *CFLocaleCopyPreferredLanguages(void) {
    return languages < 0 ? NULL : make_from_template(languages);
}
