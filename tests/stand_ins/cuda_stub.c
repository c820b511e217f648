/* A stand-in for libcuda.so.1: it counts and names the cards of the script (see script.h) by CUDA's
   rules for CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER and gives contexts that do nothing. It cannot
   allocate or compute. */
#include "script.h"

#define API __attribute__((visibility("default")))

enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NOT_FOUND = 500
};

typedef int device;
typedef struct context context;

static int initialised;
static gpu seen[MAX_GPUS];
static int seen_count;
static __thread context *contexts[16];
static __thread int context_depth;

static int by_speed(const void *left, const void *right) {
    const gpu *a = *(gpu *const *)left, *b = *(gpu *const *)right;
    if (a->speed != b->speed) return a->speed > b->speed ? -1 : 1;
    return a->slot - b->slot;
}

/* A card by index or by the start of its UUID; NULL where nothing or more than one thing fits. */
static gpu *find_card(gpu **cards, int count, const char *word, int by_uuid) {
    gpu *found = NULL;
    char *end;
    long index;
    if (!by_uuid) {
        index = strtol(word, &end, 10);
        return end == word || index < 0 || index >= count ? NULL : cards[index];
    }
    if (strncmp(word, "GPU-", 4) && strncmp(word, "MIG-", 4)) return NULL;
    for (int i = 0; i < count; i++) {
        gpu *candidates[1 + MAX_SLICES] = {cards[i]};
        for (unsigned int j = 0; j < cards[i]->slice_count; j++)
            candidates[1 + j] = &world.slices[cards[i]->slot][j];
        for (unsigned int j = 0; j <= cards[i]->slice_count; j++) {
            if (strncmp(candidates[j]->uuid, word, strlen(word))) continue;
            if (found) return NULL;
            found = candidates[j];
        }
    }
    return found;
}

static void choose_visible(gpu **cards, int count) {
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    char copy[4096], *rest = copy, *word;
    gpu *chosen[MAX_GPUS], *card;
    int by_uuid;
    if (!value) {
        for (int i = 0; i < count; i++) seen[seen_count++] = *cards[i];
        return;
    }
    snprintf(copy, sizeof copy, "%s", value);
    by_uuid = !strncmp(copy, "GPU-", 4) || !strncmp(copy, "MIG-", 4);
    while ((word = strsep(&rest, ",")) && (card = find_card(cards, count, word, by_uuid))) {
        for (int i = 0; i < seen_count; i++)
            if (chosen[i] == card) {
                seen_count = 0;
                return;
            }
        chosen[seen_count] = card;
        seen[seen_count++] = *card;
        if (card->parent_slot >= 0) return;
    }
}

API int cuInit(unsigned int flags) {
    gpu *cards[MAX_GPUS];
    const char *order = getenv("CUDA_DEVICE_ORDER");
    int count;
    (void)flags;
    lock_world(__func__);
    if (!initialised) {
        long code;
        if (find_rule(world.errors, world.error_count, __func__, &code)) {
            unlock_world();
            return (int)code;
        }
        count = visible_gpus(cards);
        if (world.fastest_first && (!order || strcmp(order, "PCI_BUS_ID")))
            qsort(cards, (size_t)count, sizeof *cards, by_speed);
        choose_visible(cards, count);
        initialised = seen_count > 0;
    }
    unlock_world();
    return initialised ? CUDA_OK : CUDA_NO_DEVICE;
}

API int cuDriverGetVersion(int *version) {
    *version = 13000;
    return CUDA_OK;
}

API int cuDeviceGetCount(int *count) {
    if (!initialised) return CUDA_NOT_INITIALIZED;
    *count = seen_count;
    return CUDA_OK;
}

API int cuDeviceGet(device *handle, int ordinal) {
    if (!initialised) return CUDA_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= seen_count) return CUDA_INVALID_DEVICE;
    *handle = ordinal;
    return CUDA_OK;
}

static int check_device(device handle) {
    if (!initialised) return CUDA_NOT_INITIALIZED;
    return handle < 0 || handle >= seen_count ? CUDA_INVALID_DEVICE : CUDA_OK;
}

API int cuDeviceGetUuid_v2(unsigned char *uuid, device handle) {
    int result = check_device(handle);
    const char *digits;
    if (result) return result;
    digits = seen[handle].uuid + 4;
    for (int i = 0; i < 16; i++) {
        unsigned int byte = 0;
        while (*digits == '-') digits++;
        sscanf(digits, "%2x", &byte);
        uuid[i] = (unsigned char)byte;
        digits += 2;
    }
    return CUDA_OK;
}

API int cuDeviceGetUuid(unsigned char *uuid, device handle) { return cuDeviceGetUuid_v2(uuid, handle); }

API int cuDeviceGetName(char *name, int size, device handle) {
    int result = check_device(handle);
    if (!result) snprintf(name, (size_t)size, "%s", seen[handle].name);
    return result;
}

API int cuDeviceTotalMem_v2(size_t *bytes, device handle) {
    int result = check_device(handle);
    if (!result) *bytes = seen[handle].total;
    return result;
}

API int cuDeviceGetPCIBusId(char *bus, int size, device handle) {
    int result = check_device(handle);
    if (!result) snprintf(bus, (size_t)size, "%s", seen[handle].bus);
    return result;
}

API int cuDeviceGetAttribute(int *value, int attribute, device handle) {
    enum { COMPUTE_CAPABILITY_MAJOR = 75 };
    int result = check_device(handle);
    if (!result) *value = attribute == COMPUTE_CAPABILITY_MAJOR ? 8 : 0;
    return result;
}

API int cuDevicePrimaryCtxRetain(context **created, device handle) {
    int result = check_device(handle);
    if (!result) *created = (context *)&seen[handle];
    return result;
}

API int cuDevicePrimaryCtxRelease_v2(device handle) { return check_device(handle); }

API int cuDevicePrimaryCtxGetState(device handle, unsigned int *flags, int *active) {
    *flags = 0;
    *active = context_depth > 0;
    return check_device(handle);
}

API int cuCtxGetCurrent(context **current) {
    *current = context_depth ? contexts[context_depth - 1] : NULL;
    return CUDA_OK;
}

API int cuCtxSetCurrent(context *wanted) {
    if (!context_depth) context_depth = 1;
    contexts[context_depth - 1] = wanted;
    return CUDA_OK;
}

API int cuCtxPushCurrent_v2(context *wanted) {
    if (context_depth == 16) return CUDA_INVALID_VALUE;
    contexts[context_depth++] = wanted;
    return CUDA_OK;
}

API int cuCtxPopCurrent_v2(context **popped) {
    if (!context_depth) return CUDA_INVALID_CONTEXT;
    *popped = contexts[--context_depth];
    return CUDA_OK;
}

API int cuCtxGetDevice(device *handle) {
    if (!context_depth || !contexts[context_depth - 1]) return CUDA_INVALID_CONTEXT;
    *handle = (device)((gpu *)contexts[context_depth - 1] - seen);
    return CUDA_OK;
}

API int cuGetErrorName(int code, const char **text) {
    *text = code ? "CUDA_ERROR_FROM_STAND_IN" : "CUDA_SUCCESS";
    return CUDA_OK;
}

API int cuGetErrorString(int code, const char **text) {
    *text = code ? "an error of the stand-in" : "no error";
    return CUDA_OK;
}

typedef void (*function)(void);
typedef struct {
    const char *name;
    function address;
} export;

API int cuGetProcAddress_v2(const char *, function *, int, unsigned long long, int *);

#define EXPORT(name, implementation) {#name, (function)implementation}

static const export exports[] = {
    EXPORT(cuInit, cuInit),
    EXPORT(cuDriverGetVersion, cuDriverGetVersion),
    EXPORT(cuDeviceGetCount, cuDeviceGetCount),
    EXPORT(cuDeviceGet, cuDeviceGet),
    EXPORT(cuDeviceGetUuid, cuDeviceGetUuid_v2),
    EXPORT(cuDeviceGetName, cuDeviceGetName),
    EXPORT(cuDeviceTotalMem, cuDeviceTotalMem_v2),
    EXPORT(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId),
    EXPORT(cuDeviceGetAttribute, cuDeviceGetAttribute),
    EXPORT(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain),
    EXPORT(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2),
    EXPORT(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState),
    EXPORT(cuCtxGetCurrent, cuCtxGetCurrent),
    EXPORT(cuCtxSetCurrent, cuCtxSetCurrent),
    EXPORT(cuCtxPushCurrent, cuCtxPushCurrent_v2),
    EXPORT(cuCtxPopCurrent, cuCtxPopCurrent_v2),
    EXPORT(cuCtxGetDevice, cuCtxGetDevice),
    EXPORT(cuGetErrorName, cuGetErrorName),
    EXPORT(cuGetErrorString, cuGetErrorString),
    EXPORT(cuGetProcAddress, cuGetProcAddress_v2),
};

/* CUDA's own bindings find every function through this one. */
API int cuGetProcAddress_v2(const char *name, function *address, int version,
                            unsigned long long flags, int *status) {
    (void)version;
    (void)flags;
    *address = NULL;
    for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
        if (!strcmp(exports[i].name, name)) *address = exports[i].address;
    if (status) *status = *address ? 0 : 1;
    return *address ? CUDA_OK : CUDA_NOT_FOUND;
}
