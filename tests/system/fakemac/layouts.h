/* What macOS fills in for its callers: the fields in the order of xnu's headers (bsd/sys/proc_info.h,
 * resource.h, sysctl.h of xnu-11417, macOS 15.4), so that the compiler finds the offsets, not we. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <stdint.h>

enum { COMM = 16, PATH_LENGTH = 1024 };

struct proc_bsdinfo {
    uint32_t pbi_flags, pbi_status, pbi_xstatus, pbi_pid, pbi_ppid;
    uint32_t pbi_uid, pbi_gid, pbi_ruid, pbi_rgid, pbi_svuid, pbi_svgid, rfu_1;
    char pbi_comm[COMM], pbi_name[2 * COMM];
    uint32_t pbi_nfiles, pbi_pgid, pbi_pjobc, e_tdev, e_tpgid;
    int32_t pbi_nice;
    uint64_t pbi_start_tvsec, pbi_start_tvusec;
};

struct proc_taskinfo {
    uint64_t pti_virtual_size, pti_resident_size, pti_total_user, pti_total_system;
    uint64_t pti_threads_user, pti_threads_system;
    int32_t pti_policy, pti_faults, pti_pageins, pti_cow_faults, pti_messages_sent;
    int32_t pti_messages_received, pti_syscalls_mach, pti_syscalls_unix, pti_csw;
    int32_t pti_threadnum, pti_numrunning, pti_priority;
};

struct proc_regioninfo {
    uint32_t pri_protection, pri_max_protection, pri_inheritance, pri_flags;
    uint64_t pri_offset;
    uint32_t pri_behavior, pri_user_wired_count, pri_user_tag, pri_pages_resident;
    uint32_t pri_pages_shared_now_private, pri_pages_swapped_out, pri_pages_dirtied, pri_ref_count;
    uint32_t pri_shadow_depth, pri_share_mode, pri_private_pages_resident;
    uint32_t pri_shared_pages_resident, pri_obj_id, pri_depth;
    uint64_t pri_address, pri_size;
};

struct vinfo_stat {
    uint32_t vst_dev;
    uint16_t vst_mode, vst_nlink;
    uint64_t vst_ino;
    uint32_t vst_uid, vst_gid;
    int64_t vst_atime, vst_atimensec, vst_mtime, vst_mtimensec;
    int64_t vst_ctime, vst_ctimensec, vst_birthtime, vst_birthtimensec;
    int64_t vst_size, vst_blocks;
    int32_t vst_blksize;
    uint32_t vst_flags, vst_gen, vst_rdev;
    int64_t vst_qspare[2];
};

struct vnode_info {
    struct vinfo_stat vi_stat;
    int vi_type, vi_pad;
    struct { int32_t val[2]; } vi_fsid;
};

struct vnode_info_path {
    struct vnode_info vip_vi;
    char vip_path[PATH_LENGTH];
};

struct proc_regionwithpathinfo {
    struct proc_regioninfo prp_prinfo;
    struct vnode_info_path prp_vip;
};

struct proc_exitreasonbasicinfo {
    uint32_t beri_namespace;
    uint64_t beri_code, beri_flags;
    uint32_t beri_reason_buf_size;
} __attribute__((packed));

struct rusage_info_v4 {
    uint8_t ri_uuid[16];
    uint64_t ri_user_time, ri_system_time, ri_pkg_idle_wkups, ri_interrupt_wkups, ri_pageins;
    uint64_t ri_wired_size, ri_resident_size, ri_phys_footprint;
    uint64_t ri_proc_start_abstime, ri_proc_exit_abstime;
    uint64_t ri_child_user_time, ri_child_system_time, ri_child_pkg_idle_wkups;
    uint64_t ri_child_interrupt_wkups, ri_child_pageins, ri_child_elapsed_abstime;
    uint64_t ri_diskio_bytesread, ri_diskio_byteswritten;
    uint64_t ri_cpu_time_qos_default, ri_cpu_time_qos_maintenance, ri_cpu_time_qos_background;
    uint64_t ri_cpu_time_qos_utility, ri_cpu_time_qos_legacy, ri_cpu_time_qos_user_initiated;
    uint64_t ri_cpu_time_qos_user_interactive;
    uint64_t ri_billed_system_time, ri_serviced_system_time, ri_logical_writes;
    uint64_t ri_lifetime_max_phys_footprint, ri_instructions, ri_cycles;
    uint64_t ri_billed_energy, ri_serviced_energy, ri_interval_max_phys_footprint, ri_runnable_time;
};

struct xsw_usage {
    uint64_t xsu_total, xsu_avail, xsu_used;
    uint32_t xsu_pagesize;
    int32_t xsu_encrypted;
};

#endif
