/* A stand-in for CUDA's driver library. What the first line of the card's device file says is how it fails. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char state[64];
static unsigned long used;

/* The card is open from here on, as the real driver holds it. */
static int open_card(void) {
    char path[64];
    int node = -1;
    for (int minor = 0; minor < 16 && node < 0; minor++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", minor);
        node = open(path, O_RDWR);
    }
    if (node < 0) return 0;
    ssize_t size = pread(node, state, sizeof state - 1, 0);
    state[size < 0 ? 0 : size] = 0;
    if (sscanf(state, "used %lu", &used) != 1) used = 0;
    return 1;
}

int cuInit(unsigned flags) {
    char path[64];
    if (memfd_create("cuda", 0) < 0) return 304;
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)syscall(SYS_gettid));
    int comm = open(path, O_WRONLY);
    if (comm < 0 || write(comm, "cuda-thread", 11) != 11) return 304;
    close(comm);
    if (!open_card()) return 100;
    if (!strncmp(state, "304", 3)) return 304;
    return strncmp(state, "suspended", 9) ? 0 : 999;
}

int cuGetErrorName(int code, const char **word) {
    *word = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 304 ? "CUDA_ERROR_OPERATING_SYSTEM" : code == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
          : "CUDA_ERROR_UNKNOWN";
    return 0;
}

int cuDeviceGet(int *device, int number) { *device = number; return number ? 101 : 0; }

/* The card that the run is told to use. */
int cuDeviceGetUuid(unsigned char *uuid, int device) {
    const char *wanted = getenv("CUDA_VISIBLE_DEVICES");
    if (!wanted || strncmp(wanted, "GPU-", 4)) return 100;
    for (wanted += 4; *wanted; wanted += 2) {
        if (*wanted == '-') wanted++;
        sscanf(wanted, "%2hhx", uuid++);
    }
    return 0;
}

int cuDeviceGetAttribute(int *value, int which, int device) { *value = 8; return 0; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    *context = state;
    return strncmp(state, "full", 4) ? 0 : 2;
}
int cuMemGetInfo_v2(size_t *free, size_t *total) {
    *total = 24ul << 30;
    *free = *total - (used << 20);
    return 0;
}
int cuMemAlloc_v2(uint64_t *out, size_t bytes) { *out = (uint64_t)calloc(1, bytes); return 0; }
int cuModuleLoadData(void **module, const char *text) { *module = state; return strstr(text, "sm_75") ? 0 : 218; }
int cuModuleGetFunction(void **kernel, void *module, const char *name) { *kernel = state; return 0; }
int cuLaunchKernel(void *kernel, unsigned a, unsigned b, unsigned c, unsigned threads, unsigned d, unsigned e,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    uint32_t *out = *(uint32_t **)parameters[0];
    for (uint32_t i = 0; i < threads; i++) out[i] = i * i + (strncmp(state, "wrong", 5) ? 7 : 8);
    return 0;
}
int cuCtxSynchronize(void) { return strncmp(state, "lost", 4) ? 0 : 719; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { memcpy(to, (void *)from, bytes); return 0; }
