/* libproc and sysctl over processes and values that the test has put in. The rules of who may ask
 * what, and the error numbers, are those of xnu's bsd/kern/proc_info.c and kern_sysctl.c. */
#include "fault.h"
#include "layouts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSES = 4096, MAX_REGIONS = 64, MAX_VALUES = 64 };
enum { UID_ONLY = 4, BSDINFO = 3, TASKINFO = 4, REGION_ALL = 8, REGION_FILES = 22, EXIT_REASON = 25 };
enum { RUSAGE_V4 = 4 };
enum { STATUS, FOOTPRINT, PEAK, LIVES_FOR, IS_NEW_AFTER, STALLS, HIDDEN, VIRTUAL };
enum { NAMESPACE = VIRTUAL + 1, CODE, FLAGS, VALUES };

struct region {
    uint64_t address, size;
    uint32_t protection, max_protection;
    char path[PATH_LENGTH]; /* empty: memory without a file */
};

struct process {
    int pid, parent;
    uint32_t uid;
    uint64_t seconds, microseconds;
    int64_t value[VALUES];
    struct region regions[MAX_REGIONS];
    int region_count;
};

static struct process *processes[MAX_PROCESSES];
static int process_count, births, listing_error, page_walks;
static struct { char name[64]; char value[256]; size_t size; } values[MAX_VALUES];
static int value_count;

void reset_processes(void) {
    for (int i = 0; i < process_count; i++) {
        free(processes[i]);
    }
    process_count = value_count = births = listing_error = page_walks = 0;
}

static struct process *find(int pid) {
    for (int i = 0; i < process_count; i++) {
        if (processes[i]->pid == pid) {
            return processes[i];
        }
    }
    return NULL;
}

void fake_process(int pid, int parent, uint32_t uid, uint64_t seconds, uint64_t microseconds) {
    struct process *process = calloc(1, sizeof *process);
    process->pid = pid;
    process->parent = parent;
    process->uid = uid;
    process->seconds = seconds;
    process->microseconds = microseconds;
    process->value[STATUS] = 2;
    process->value[LIVES_FOR] = process->value[IS_NEW_AFTER] = -1;
    processes[process_count++] = process;
}

void fake_process_value(int pid, int what, int64_t value) { find(pid)->value[what] = value; }

void fake_region(int pid, uint64_t address, uint64_t size, uint32_t protection, const char *path) {
    struct process *process = find(pid);
    struct region *region = &process->regions[process->region_count++];
    *region = (struct region){address, size, protection, 7, ""};
    strncpy(region->path, path, PATH_LENGTH - 1);
}

void fake_births(int each_listing) { births = each_listing; }
void fake_listing_error(int code) { listing_error = code; }
int fake_page_walks(void) { return page_walks; }

/* Each call on a process is one step of its life. */
static struct process *ask(int pid, int *error) {
    struct process *process = find(pid);
    *error = ESRCH;
    if (process == NULL || process->value[LIVES_FOR] == 0 || process->value[HIDDEN]) {
        return NULL;
    }
    if (process->value[IS_NEW_AFTER] == 0) {
        process->seconds += 1;
    }
    process->value[LIVES_FOR] -= process->value[LIVES_FOR] > 0;
    process->value[IS_NEW_AFTER] -= process->value[IS_NEW_AFTER] >= 0;
    *error = process->uid == geteuid() ? 0 : EPERM;
    return process;
}

int proc_listpids(uint32_t type, uint32_t uid, void *buffer, int size) {
    int *pids = buffer, count = 0;
    int room = size / (int)sizeof(int);
    if (type != UID_ONLY || uid != geteuid()) {
        fault("proc_listpids: of whom? %u %u", type, uid);
    }
    if (listing_error) {
        errno = listing_error;
        return 0;
    }
    if (buffer == NULL) {
        return (process_count + 20) * (int)sizeof(int);
    }
    for (int i = 0; i < births && process_count < MAX_PROCESSES; i++) {
        fake_process(50000 + process_count, 1, uid, 1, 1);
    }
    for (int i = 0; i < process_count && count < room; i++) {
        if (processes[i]->uid == uid) {
            pids[count++] = processes[i]->pid;
        }
    }
    return count * (int)sizeof(int);
}

static int fill_bsdinfo(const struct process *process, struct proc_bsdinfo *info) {
    memset(info, 0x5a, sizeof *info);
    info->pbi_flags = (uint32_t)process->value[FLAGS];
    info->pbi_status = (uint32_t)process->value[STATUS];
    info->pbi_pid = (uint32_t)process->pid;
    info->pbi_ppid = (uint32_t)process->parent;
    info->pbi_uid = process->uid;
    info->pbi_start_tvsec = process->seconds;
    info->pbi_start_tvusec = process->microseconds;
    return sizeof *info;
}

static int fill_region(struct process *process, uint64_t address, int flavor,
                       struct proc_regionwithpathinfo *info) {
    for (int i = 0; i < process->region_count; i++) {
        const struct region *region = &process->regions[i];
        int is_there = process->value[STALLS] || region->address + region->size > address;
        if (!is_there || (flavor == REGION_FILES && region->path[0] == '\0')) {
            continue;
        }
        page_walks += flavor == REGION_ALL;
        memset(info, 0x5a, sizeof *info);
        info->prp_prinfo.pri_protection = region->protection;
        info->prp_prinfo.pri_max_protection = region->max_protection;
        info->prp_prinfo.pri_address = region->address;
        info->prp_prinfo.pri_size = region->size;
        memcpy(info->prp_vip.vip_path, region->path, PATH_LENGTH);
        return sizeof *info;
    }
    errno = EINVAL;
    return 0;
}

static int fill_taskinfo(const struct process *process, struct proc_taskinfo *info) {
    memset(info, 0x5a, sizeof *info);
    info->pti_virtual_size = (uint64_t)process->value[VIRTUAL];
    return sizeof *info;
}

/* Of a zombie too, but only for its parent; most processes have none. */
static int fill_exit_reason(int pid, struct proc_exitreasonbasicinfo *info) {
    const struct process *process = find(pid);
    if (process == NULL) {
        errno = ESRCH;
    } else if (process->parent != getpid()) {
        errno = EACCES;
    } else if (process->value[NAMESPACE] == 0) {
        errno = ENOENT;
    } else {
        memset(info, 0x5a, sizeof *info);
        info->beri_namespace = (uint32_t)process->value[NAMESPACE];
        info->beri_code = (uint64_t)process->value[CODE];
        return sizeof *info;
    }
    return 0;
}

static size_t size_of(int flavor) {
    switch (flavor) {
    case BSDINFO:
        return sizeof(struct proc_bsdinfo);
    case TASKINFO:
        return sizeof(struct proc_taskinfo);
    case REGION_FILES:
    case REGION_ALL:
        return sizeof(struct proc_regionwithpathinfo);
    case EXIT_REASON:
        return sizeof(struct proc_exitreasonbasicinfo);
    default:
        return 0;
    }
}

int proc_pidinfo(int pid, int flavor, uint64_t argument, void *buffer, int size) {
    int error;
    size_t needed = size_of(flavor);
    if (needed == 0) {
        errno = EINVAL;
        return 0;
    }
    if (size < (int)needed) {
        errno = ENOMEM;
        return 0;
    }
    if (flavor == EXIT_REASON) {
        return fill_exit_reason(pid, buffer);
    }
    struct process *process = ask(pid, &error);
    if (error) {
        errno = error;
        return 0;
    }
    if (flavor == BSDINFO) {
        return fill_bsdinfo(process, buffer);
    }
    return flavor == TASKINFO ? fill_taskinfo(process, buffer)
                              : fill_region(process, argument, flavor, buffer);
}

int proc_pid_rusage(int pid, int flavor, void *buffer) {
    struct rusage_info_v4 info;
    uint64_t *fields = &info.ri_user_time;
    int error;
    struct process *process = ask(pid, &error);
    if (flavor != RUSAGE_V4) {
        fault("proc_pid_rusage: version %d", flavor);
        error = EINVAL;
    }
    if (error) {
        errno = error;
        return -1;
    }
    for (size_t i = 0; i < (sizeof info - sizeof info.ri_uuid) / sizeof *fields; i++) {
        fields[i] = 1000000 + i;
    }
    info.ri_phys_footprint = (uint64_t)process->value[FOOTPRINT];
    info.ri_lifetime_max_phys_footprint = (uint64_t)process->value[PEAK];
    memcpy(buffer, &info, sizeof info);
    return 0;
}

/* For psutil_double.py: what the kernel tells anyone of a process, and in the error whose it is. */
int fake_kinfo(int pid, int *parent, uint64_t *start, int *status) {
    int error;
    struct process *process = ask(pid, &error);
    if (process != NULL) {
        *parent = process->parent;
        start[0] = process->seconds;
        start[1] = process->microseconds;
        *status = (int)process->value[STATUS];
    }
    return error;
}

void fake_sysctl(const char *name, const char *value, size_t size) {
    strncpy(values[value_count].name, name, sizeof values->name - 1);
    memcpy(values[value_count].value, value, size);
    values[value_count++].size = size;
}

void fake_swap(uint64_t total, uint64_t available, uint64_t used) {
    struct xsw_usage usage = {total, available, used, 16384, 1};
    fake_sysctl("vm.swapusage", (const char *)&usage, sizeof usage);
}

int sysctlbyname(const char *name, void *old, size_t *old_size, void *new, size_t new_size) {
    if (old == NULL || new != NULL || new_size != 0) {
        fault("sysctlbyname: only reading is expected");
    }
    for (int i = value_count - 1; i >= 0; i--) { /* the latest counts */
        if (strcmp(values[i].name, name) == 0) {
            if (*old_size < values[i].size) {
                errno = ENOMEM;
                return -1;
            }
            memcpy(old, values[i].value, values[i].size);
            *old_size = values[i].size;
            return 0;
        }
    }
    errno = ENOENT;
    return -1;
}
