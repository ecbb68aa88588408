/* A driver with two GPUs for tests of the real NVML bindings. STUB names what is wrong with it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu_instance, compute_instance; } Process;

static int first, second, memory_readings;

static int wrong(const char *what) {
    const char *stub = getenv("STUB");
    return stub && strcmp(stub, what) == 0;
}

int nvmlInitWithFlags(unsigned int flags) { return wrong("driver not loaded") ? DRIVER_NOT_LOADED : OK; }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    return code == GPU_IS_LOST ? "GPU is lost" : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Something else";
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = wrong("no gpu") ? 0 : 2;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    *device = index ? &second : &first;
    return OK;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int length) {
    strncpy(name, device == &first ? "Stub 24 GB" : "Stub 8 GB", length);
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    if (wrong("second gpu is lost") && device == &second && memory_readings++ > 0) return GPU_IS_LOST;
    memory->total = device == &first ? 24000000000ULL : 8000000000ULL;
    memory->used = 6000000000ULL;
    memory->free = memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *device, Utilization *rates) {
    rates->gpu = 42;
    rates->memory = 10;
    return OK;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *temperature) {
    *temperature = 61;
    return wrong("few sensors") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts) {
    *milliwatts = 187500;
    return wrong("few sensors") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, Process *processes) {
    if (device == &second) { *count = 0; return OK; }
    if (!processes) { *count = 2; return INSUFFICIENT_SIZE; }
    processes[0] = (Process){1, 1000000000ULL, 0, 0};
    processes[1] = (Process){(unsigned int)getpid(), 5000000000ULL, 0, 0};
    *count = 2;
    return OK;
}
