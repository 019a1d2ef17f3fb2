/* IOKit's registry, over entries that the test has put in. */
#include "fault.h"
#include "foundation.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 1024, MAX_PROPERTIES = 4096, MAX_PORTS = 1 << 20, NAME = 128, GONE = -1 };
#define BAD_ARGUMENT ((int)0xe00002c2)
#define FIRST_PORT 0x90000003u /* above 2^31, where a signed type would show */

struct entry { uint64_t id; int parent; char class[NAME]; char service[NAME]; };
struct property { int entry; char key[NAME]; int template; };
struct port { char is_iterator, is_open; int entry; int *entries; int count, next; };

static struct entry entries[MAX_ENTRIES];
static struct property properties[MAX_PROPERTIES];
static struct port *ports;
static int entry_count, property_count, port_count, open_ports;
static int matching_error, children_error, class_error, id_error, searches, property_reads;

void reset_registry(void) {
    for (int i = 0; i < port_count; i++) {
        free(ports[i].entries);
    }
    free(ports);
    ports = calloc(MAX_PORTS, sizeof *ports);
    entry_count = property_count = port_count = open_ports = searches = property_reads = 0;
    matching_error = children_error = class_error = id_error = 0;
}

int fake_entry(uint64_t id, int parent, const char *class, const char *service) {
    struct entry *entry = &entries[entry_count];
    *entry = (struct entry){.id = id, .parent = parent};
    strncpy(entry->class, class, NAME - 1);
    strncpy(entry->service, service, NAME - 1); /* empty: !registered, so nothing matches it */
    return entry_count++;
}

void fake_remove_entry(int entry) { entries[entry].parent = entries[entry].service[0] = GONE; }

void fake_property(int entry, const char *key, int template) {
    for (int i = 0; i < property_count; i++) {
        if (properties[i].entry == entry && strcmp(properties[i].key, key) == 0) {
            properties[i].template = template;
            return;
        }
    }
    properties[property_count] = (struct property){.entry = entry, .template = template};
    strncpy(properties[property_count++].key, key, NAME - 1);
}

void fake_registry_errors(int matching, int children, int class, int id) {
    matching_error = matching;
    children_error = children;
    class_error = class;
    id_error = id;
}

int fake_open_ports(void) { return open_ports; }
int fake_searches(void) { return searches; }
int fake_property_reads(void) { return property_reads; }

static uint32_t open_port(int is_iterator, int entry) {
    if (port_count == MAX_PORTS) {
        abort();
    }
    ports[port_count] = (struct port){.is_iterator = is_iterator, .is_open = 1, .entry = entry};
    open_ports++;
    return FIRST_PORT + (uint32_t)port_count++;
}

static struct port *find_port(uint32_t name, int is_iterator, const char *who) {
    struct port *port = name - FIRST_PORT < (uint32_t)port_count ? &ports[name - FIRST_PORT] : NULL;
    if (port == NULL || !port->is_open || port->is_iterator != is_iterator) {
        fault("%s: no such port: %x", who, name);
        return NULL;
    }
    return port;
}

static void iterate(struct port *port, int entry) {
    port->entries = realloc(port->entries, (size_t)(port->count + 1) * sizeof(int));
    port->entries[port->count++] = entry;
}

int IOObjectRelease(uint32_t name) {
    struct port *port = name - FIRST_PORT < (uint32_t)port_count ? &ports[name - FIRST_PORT] : NULL;
    if (port == NULL || !port->is_open) {
        fault("IOObjectRelease: no such port: %x", name);
        return BAD_ARGUMENT;
    }
    free(port->entries);
    *port = (struct port){0};
    open_ports--;
    return 0;
}

void *IOServiceMatching(const char *name) {
    return matching_error == 1 ? NULL : make_string(name, strlen(name));
}

int IOServiceGetMatchingServices(uint32_t main_port, const void *matching, uint32_t *iterator) {
    struct object *wanted = checked(matching, "IOServiceGetMatchingServices");
    searches++;
    if (main_port != 0) {
        fault("IOServiceGetMatchingServices: port %x", main_port);
    }
    if (wanted == NULL) {
        return BAD_ARGUMENT;
    }
    if (!matching_error) {
        *iterator = open_port(1, 0);
        for (int i = 0; i < entry_count; i++) {
            int is_wanted = strlen(entries[i].service) == wanted->length &&
                            memcmp(entries[i].service, wanted->bytes, wanted->length) == 0;
            if (is_wanted) {
                iterate(&ports[*iterator - FIRST_PORT], i);
            }
        }
    }
    CFRelease(matching); /* consumed, whatever comes of it */
    return matching_error;
}

uint32_t IOIteratorNext(uint32_t name) {
    struct port *port = find_port(name, 1, "IOIteratorNext");
    return port && port->next < port->count ? open_port(0, port->entries[port->next++]) : 0;
}

int IOObjectGetClass(uint32_t name, char *class) {
    struct port *port = find_port(name, 0, "IOObjectGetClass");
    if (port == NULL || class_error) {
        return BAD_ARGUMENT;
    }
    memcpy(class, entries[port->entry].class, NAME);
    return 0;
}

int IORegistryEntryGetRegistryEntryID(uint32_t name, uint64_t *id) {
    struct port *port = find_port(name, 0, "IORegistryEntryGetRegistryEntryID");
    if (port == NULL || id_error) {
        return BAD_ARGUMENT;
    }
    *id = entries[port->entry].id;
    return 0;
}

int IORegistryEntryGetChildIterator(uint32_t name, const char *plane, uint32_t *iterator) {
    struct port *port = find_port(name, 0, "IORegistryEntryGetChildIterator");
    if (port == NULL || strcmp(plane, "IOService") != 0 || children_error) {
        return BAD_ARGUMENT;
    }
    int parent = port->entry;
    *iterator = open_port(1, 0);
    for (int i = 0; i < entry_count; i++) {
        if (entries[i].parent == parent && i != parent) {
            iterate(&ports[*iterator - FIRST_PORT], i);
        }
    }
    return 0;
}

const void *IORegistryEntryCreateCFProperty(uint32_t name, const void *key, const void *allocator,
                                            uint32_t options) {
    struct port *port = find_port(name, 0, "IORegistryEntryCreateCFProperty");
    struct object *wanted = checked(key, "IORegistryEntryCreateCFProperty");
    if (allocator != NULL || options != 0) {
        fault("IORegistryEntryCreateCFProperty: %p, %x", allocator, options);
    }
    if (port == NULL || wanted == NULL || entries[port->entry].parent == GONE) {
        return NULL;
    }
    property_reads++;
    for (int i = 0; i < property_count; i++) {
        const struct property *property = &properties[i];
        int is_wanted = property->entry == port->entry && strlen(property->key) == wanted->length &&
                        memcmp(property->key, wanted->bytes, wanted->length) == 0;
        if (is_wanted) {
            return make_from_template(property->template);
        }
    }
    return NULL;
}
