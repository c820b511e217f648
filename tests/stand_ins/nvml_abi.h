/* The binary layout of what the stand-in shares with its callers. Written from NVML's
   documentation; a test compares every size and offset with NVIDIA's own nvml.h. */
#ifndef NVML_ABI_H
#define NVML_ABI_H

typedef struct {
    unsigned long long total, free, used;
} stub_memory;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} stub_memory_v2;

typedef struct {
    unsigned int gpu, memory;
} stub_utilization;

typedef struct {
    unsigned int pid;
    unsigned long long used;
} stub_process_v1;

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} stub_process_v2;

typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} stub_pci_info;

typedef struct {
    unsigned int multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
    unsigned int gpu_instance_slices, compute_instance_slices;
    unsigned long long memory_mib;
} stub_attributes;

enum stub_result {
    STUB_SUCCESS = 0,
    STUB_UNINITIALIZED = 1,
    STUB_INVALID_ARGUMENT = 2,
    STUB_NOT_SUPPORTED = 3,
    STUB_NO_PERMISSION = 4,
    STUB_NOT_FOUND = 6,
    STUB_INSUFFICIENT_SIZE = 7,
    STUB_DRIVER_NOT_LOADED = 9,
    STUB_FUNCTION_NOT_FOUND = 13,
    STUB_GPU_IS_LOST = 15,
    STUB_LIB_RM_VERSION_MISMATCH = 18,
    STUB_UNKNOWN = 999
};

#endif
