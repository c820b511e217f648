/* A stand-in for libnvidia-ml.so.1 that follows a script (see script.h), so that the real
   nvidia-ml-py, Dask and dask-cuda run on machines without a GPU. Functions that are left out with
   -DOMIT_<function> are missing symbols, as in an older driver. */
#include "nvml_abi.h"
#include "script.h"

#define API __attribute__((visibility("default")))

static int initialised;

static int scripted_error(const gpu *card, const char *function) {
    long code;
    if (find_rule(world.errors, world.error_count, function, &code)) return (int)code;
    if (card && find_rule(card->errors, card->error_count, function, &code)) return (int)code;
    if (card && card->parent_slot >= 0) return scripted_error(&world.gpus[card->parent_slot], function);
    return STUB_SUCCESS;
}

/* Every query is one of these: take the lock, answer the scripted error or the value. */
#define BEGIN(card)                                           \
    int result = STUB_SUCCESS;                                \
    lock_world(__func__);                                     \
    if (!initialised) result = STUB_UNINITIALIZED;            \
    if (!result) result = scripted_error(card, __func__);     \
    if (!result) {
#define END            \
    }                  \
    unlock_world();    \
    return result;

static void copy_text(char *into, unsigned int size, const char *text, int *result) {
    if (strlen(text) + 1 > size) *result = STUB_INSUFFICIENT_SIZE;
    else strcpy(into, text);
}

API int nvmlInitWithFlags(unsigned int flags) {
    int result;
    (void)flags;
    lock_world(__func__);
    result = scripted_error(NULL, __func__);
    if (!result) initialised++;
    unlock_world();
    return result;
}

API int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

API int nvmlShutdown(void) {
    int result;
    pthread_mutex_lock(&world_lock);
    result = initialised ? STUB_SUCCESS : STUB_UNINITIALIZED;
    if (initialised) initialised--;
    unlock_world();
    return result;
}

API const char *nvmlErrorString(int code) {
    (void)code;
    return "scripted error";
}

API int nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    BEGIN(NULL) copy_text(version, size, "580.65.06", &result); END
}

API int nvmlSystemGetNVMLVersion(char *version, unsigned int size) {
    BEGIN(NULL) copy_text(version, size, "13.580.65.06", &result); END
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version) { BEGIN(NULL) *version = 13000; END }

API int nvmlDeviceGetCount_v2(unsigned int *count) {
    gpu *cards[MAX_GPUS];
    BEGIN(NULL) *count = (unsigned int)visible_gpus(cards); END
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned int index, gpu **handle) {
    gpu *cards[MAX_GPUS];
    BEGIN(NULL)
    if (index >= (unsigned int)visible_gpus(cards)) result = STUB_INVALID_ARGUMENT;
    else if (!(result = scripted_error(cards[index], __func__))) *handle = cards[index];
    END
}

static gpu *find_uuid(const char *uuid) {
    for (int i = 0; i < MAX_GPUS; i++) {
        if (world.gpus[i].hidden) continue;
        if (world.gpus[i].present && !strcmp(world.gpus[i].uuid, uuid)) return &world.gpus[i];
        for (unsigned int j = 0; j < world.gpus[i].slice_count; j++)
            if (!strcmp(world.slices[i][j].uuid, uuid)) return &world.slices[i][j];
    }
    return NULL;
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, gpu **handle) {
    BEGIN(NULL)
    gpu *card = find_uuid(uuid);
    result = card ? scripted_error(card, __func__) : STUB_NOT_FOUND;
    if (!result) *handle = card;
    END
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, gpu **handle) {
    gpu *cards[MAX_GPUS];
    BEGIN(NULL)
    int count = visible_gpus(cards);
    result = STUB_NOT_FOUND;
    for (int i = 0; i < count; i++)
        if (!strcmp(cards[i]->bus, bus)) *handle = cards[i], result = STUB_SUCCESS;
    END
}

API int nvmlDeviceGetName(gpu *card, char *name, unsigned int size) {
    BEGIN(card) copy_text(name, size, card->name, &result); END
}

API int nvmlDeviceGetUUID(gpu *card, char *uuid, unsigned int size) {
    BEGIN(card) copy_text(uuid, size, card->uuid, &result); END
}

API int nvmlDeviceGetIndex(gpu *card, unsigned int *index) {
    gpu *cards[MAX_GPUS];
    BEGIN(card)
    int count = visible_gpus(cards);
    result = STUB_NOT_FOUND;
    for (int i = 0; i < count; i++)
        if (cards[i] == card) *index = (unsigned int)i, result = STUB_SUCCESS;
    END
}

API int nvmlDeviceGetMinorNumber(gpu *card, unsigned int *minor) {
    BEGIN(card) *minor = (unsigned int)card->slot; END
}

API int nvmlDeviceGetPciInfo_v3(gpu *card, stub_pci_info *info) {
    BEGIN(card)
    memset(info, 0, sizeof *info);
    copy_text(info->bus_id, sizeof info->bus_id, card->bus, &result);
    sscanf(card->bus, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04x:%02x:%02x.0",
             info->domain & 0xFFFF, info->bus & 0xFF, info->device & 0xFF);
    END
}

API int nvmlDeviceGetMemoryInfo(gpu *card, stub_memory *memory) {
    BEGIN(card)
    memory->total = card->total;
    memory->used = card->used + card->reserved;
    memory->free = memory->total - memory->used;
    END
}

#ifndef OMIT_nvmlDeviceGetMemoryInfo_v2
API int nvmlDeviceGetMemoryInfo_v2(gpu *card, stub_memory_v2 *memory) {
    BEGIN(card)
    if (memory->version != (sizeof *memory | 2u << 24)) result = STUB_INVALID_ARGUMENT;
    memory->total = card->total;
    memory->used = card->used;
    memory->reserved = card->reserved;
    memory->free = memory->total - memory->used - memory->reserved;
    END
}
#endif

API int nvmlDeviceGetUtilizationRates(gpu *card, stub_utilization *rates) {
    BEGIN(card)
    if (card->mig || card->parent_slot >= 0) result = STUB_NOT_SUPPORTED;
    rates->gpu = card->util_gpu;
    rates->memory = card->util_memory;
    END
}

#define LIST_PROCESSES(type, ...)                                               \
    BEGIN(card)                                                                 \
    unsigned int room = *count;                                                 \
    *count = card->process_count;                                               \
    if (room < card->process_count) result = STUB_INSUFFICIENT_SIZE;            \
    for (unsigned int i = 0; !result && i < card->process_count; i++)           \
        rows[i] = (type){card->processes[i].pid, card->processes[i].used, ##__VA_ARGS__}; \
    END

API int nvmlDeviceGetComputeRunningProcesses(gpu *card, unsigned int *count, stub_process_v1 *rows) {
    LIST_PROCESSES(stub_process_v1)
}

#ifndef OMIT_nvmlDeviceGetComputeRunningProcesses_v2
API int nvmlDeviceGetComputeRunningProcesses_v2(gpu *card, unsigned int *count, stub_process_v2 *rows) {
    LIST_PROCESSES(stub_process_v2, 0xFFFFFFFFu, 0xFFFFFFFFu)
}
#endif

#ifndef OMIT_nvmlDeviceGetComputeRunningProcesses_v3
API int nvmlDeviceGetComputeRunningProcesses_v3(gpu *card, unsigned int *count, stub_process_v2 *rows) {
    LIST_PROCESSES(stub_process_v2, 0xFFFFFFFFu, 0xFFFFFFFFu)
}
#endif

API int nvmlDeviceGetCpuAffinity(gpu *card, unsigned int words, unsigned long *mask) {
    long cores = sysconf(_SC_NPROCESSORS_CONF);
    BEGIN(card)
    memset(mask, 0, words * sizeof *mask);
    for (long i = 0; i < cores && i < (long)words * 64; i++) mask[i / 64] |= 1UL << (i % 64);
    END
}

API int nvmlDeviceGetMigMode(gpu *card, unsigned int *current, unsigned int *pending) {
    BEGIN(card) *current = *pending = (unsigned int)card->mig; END
}

API int nvmlDeviceGetMaxMigDeviceCount(gpu *card, unsigned int *count) {
    BEGIN(card) *count = card->mig ? 7 : 0; END
}

API int nvmlDeviceGetMigDeviceHandleByIndex(gpu *card, unsigned int index, gpu **handle) {
    BEGIN(card)
    if (index >= card->slice_count) result = STUB_NOT_FOUND;
    else *handle = &world.slices[card->slot][index];
    END
}

API int nvmlDeviceIsMigDeviceHandle(gpu *card, unsigned int *is_slice) {
    BEGIN(card) *is_slice = card->parent_slot >= 0; END
}

API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(gpu *card, gpu **parent) {
    BEGIN(card)
    if (card->parent_slot < 0) result = STUB_INVALID_ARGUMENT;
    else *parent = &world.gpus[card->parent_slot];
    END
}

API int nvmlDeviceGetAttributes_v2(gpu *card, stub_attributes *attributes) {
    BEGIN(card)
    memset(attributes, 0, sizeof *attributes);
    if (card->parent_slot < 0) result = STUB_NOT_SUPPORTED;
    attributes->memory_mib = card->total >> 20;
    END
}
