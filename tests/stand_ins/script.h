/* The script that both stand-ins follow: a text file named by NVML_STUB_SCRIPT, read again whenever
   it changes, so that a test can change the world under a live process. One fact a line:

     order pci|fastest              CUDA's order where CUDA_DEVICE_ORDER does not say PCI_BUS_ID
     error FUNCTION|* CODE          what that function (or every one but nvmlShutdown) answers
     latency_ms FUNCTION|* N        how long it takes; withdrawing the line ends the wait
     gpu N uuid TEXT                N is the card's slot and never changes its meaning
     gpu N name TEXT                %XX is the byte with that hexadecimal code
     gpu N bus TEXT
     gpu N total|used|reserved BYTES
     gpu N util GPU MEMORY          in per cent
     gpu N speed N                  the greater, the earlier in the "fastest" order
     gpu N hidden 1                 the card is not counted and has no index
     gpu N process PID USED|unknown
     gpu N mig 1
     gpu N slice UUID TOTAL USED
     gpu N error FUNCTION|* CODE
*/
#ifndef STUB_SCRIPT_H
#define STUB_SCRIPT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_GPUS 64
#define MAX_PROCESSES 64
#define MAX_SLICES 8
#define MAX_RULES 64
#define UNKNOWN_MEMORY 0xFFFFFFFFFFFFFFFFULL

typedef struct {
    char function[64];
    long value;
} rule;

typedef struct {
    unsigned int pid;
    unsigned long long used;
} scripted_process;

typedef struct gpu {
    int present, hidden, mig, slot, parent_slot;
    char uuid[96], name[96], bus[32];
    unsigned long long total, used, reserved;
    unsigned int util_gpu, util_memory;
    long speed;
    scripted_process processes[MAX_PROCESSES];
    unsigned int process_count;
    rule errors[MAX_RULES];
    int error_count;
    unsigned int slice_count;
} gpu;

typedef struct {
    int fastest_first;
    gpu gpus[MAX_GPUS];
    gpu slices[MAX_GPUS][MAX_SLICES];
    rule errors[MAX_RULES], latencies[MAX_RULES];
    int error_count, latency_count;
} world_t;

static world_t world;
static struct stat world_stat;
static pthread_mutex_t world_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_rule(rule *rules, int *count, const char *text) {
    if (*count < MAX_RULES && sscanf(text, "%63s %ld", rules[*count].function, &rules[*count].value) == 2)
        (*count)++;
}

static void unescape(char *into, size_t size, const char *text) {
    size_t used = 0;
    while (*text && used + 1 < size) {
        unsigned int byte;
        if (text[0] == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
            into[used++] = (char)byte;
            text += 3;
        } else {
            into[used++] = *text++;
        }
    }
    into[used] = 0;
}

static void read_gpu_line(gpu *card, gpu *slices, const char *key, const char *text) {
    if (!strcmp(key, "uuid")) unescape(card->uuid, sizeof card->uuid, text);
    else if (!strcmp(key, "name")) unescape(card->name, sizeof card->name, text);
    else if (!strcmp(key, "bus")) unescape(card->bus, sizeof card->bus, text);
    else if (!strcmp(key, "total")) card->total = strtoull(text, NULL, 10);
    else if (!strcmp(key, "used")) card->used = strtoull(text, NULL, 10);
    else if (!strcmp(key, "reserved")) card->reserved = strtoull(text, NULL, 10);
    else if (!strcmp(key, "util")) sscanf(text, "%u %u", &card->util_gpu, &card->util_memory);
    else if (!strcmp(key, "speed")) card->speed = strtol(text, NULL, 10);
    else if (!strcmp(key, "hidden")) card->hidden = text[0] == '1';
    else if (!strcmp(key, "mig")) card->mig = text[0] == '1';
    else if (!strcmp(key, "error")) add_rule(card->errors, &card->error_count, text);
    else if (!strcmp(key, "process") && card->process_count < MAX_PROCESSES) {
        scripted_process *process = &card->processes[card->process_count++];
        char used[32] = "0";
        sscanf(text, "%u %31s", &process->pid, used);
        process->used = strcmp(used, "unknown") ? strtoull(used, NULL, 10) : UNKNOWN_MEMORY;
    } else if (!strcmp(key, "slice") && card->slice_count < MAX_SLICES) {
        gpu *slice = &slices[card->slice_count++];
        slice->present = 1;
        slice->parent_slot = card->slot;
        snprintf(slice->name, sizeof slice->name, "%.80s MIG slice", card->name);
        sscanf(text, "%95s %llu %llu", slice->uuid, &slice->total, &slice->used);
    }
}

static void read_world(FILE *script) {
    char line[512], key[32];
    int slot, start;
    memset(&world, 0, sizeof world);
    while (fgets(line, sizeof line, script)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "order fastest")) world.fastest_first = 1;
        else if (!strncmp(line, "error ", 6)) add_rule(world.errors, &world.error_count, line + 6);
        else if (!strncmp(line, "latency_ms ", 11))
            add_rule(world.latencies, &world.latency_count, line + 11);
        else if (sscanf(line, "gpu %d %31s %n", &slot, key, &start) == 2 && slot >= 0 && slot < MAX_GPUS) {
            world.gpus[slot].present = 1;
            world.gpus[slot].slot = slot;
            world.gpus[slot].parent_slot = -1;
            read_gpu_line(&world.gpus[slot], world.slices[slot], key, line + start);
        }
    }
}

/* Call with the lock held. */
static void refresh_world(void) {
    const char *path = getenv("NVML_STUB_SCRIPT");
    struct stat now;
    FILE *script;
    if (!path || stat(path, &now)) return;
    if (now.st_ino == world_stat.st_ino && now.st_size == world_stat.st_size &&
        now.st_mtim.tv_sec == world_stat.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == world_stat.st_mtim.tv_nsec)
        return;
    if (!(script = fopen(path, "r"))) return;
    world_stat = now;
    read_world(script);
    fclose(script);
}

static int find_rule(const rule *rules, int count, const char *function, long *value) {
    for (int i = 0; i < count; i++)
        if (!strcmp(rules[i].function, function) || !strcmp(rules[i].function, "*")) {
            *value = rules[i].value;
            return 1;
        }
    return 0;
}

/* Waits as scripted, without the lock, then returns with the lock held. */
static void lock_world(const char *function) {
    long waited_ms = 0, wanted_ms;
    for (;;) {
        pthread_mutex_lock(&world_lock);
        refresh_world();
        if (!find_rule(world.latencies, world.latency_count, function, &wanted_ms) ||
            waited_ms >= wanted_ms)
            return;
        pthread_mutex_unlock(&world_lock);
        usleep(10000);
        waited_ms += 10;
    }
}

static void unlock_world(void) { pthread_mutex_unlock(&world_lock); }

/* The cards that have an index, in slot order (which is the order of the PCI bus). */
static int visible_gpus(gpu **cards) {
    int count = 0;
    for (int i = 0; i < MAX_GPUS; i++)
        if (world.gpus[i].present && !world.gpus[i].hidden) cards[count++] = &world.gpus[i];
    return count;
}

#endif
