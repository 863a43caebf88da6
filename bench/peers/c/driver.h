/* What the drivers in C have in common. The contract is that of common/src/lib.rs:
 *
 *   DRIVER ROLE TRANSPORT PORT SIZE COUNT PEERS
 */
#pragma once
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define FAIL(...)                         \
    do {                                  \
        fprintf(stderr, __VA_ARGS__);     \
        fputc('\n', stderr);              \
        exit(2);                          \
    } while (0)

/* Ends the program when something that must hold does not. */
#define MUST(what)                                                                  \
    do {                                                                            \
        if (!(what)) FAIL("%s:%d: %s: %s", __FILE__, __LINE__, #what, strerror(errno)); \
    } while (0)

/* The command line. */
typedef struct {
    const char *role;
    const char *transport;
    int port;
    size_t size;
    uint64_t count;
    uint64_t warm;  /* messages that warm up */
    uint64_t total; /* all messages */
    int peers;
    uint64_t started_ns;
} args_t;

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline args_t read_args(int argc, char **argv) {
    args_t args = {.started_ns = now_ns()};
    if (argc != 7) FAIL("usage: ROLE TRANSPORT PORT SIZE COUNT PEERS");
    args.role = argv[1];
    args.transport = argv[2];
    args.port = atoi(argv[3]);
    args.size = strtoull(argv[4], NULL, 10);
    args.count = strtoull(argv[5], NULL, 10);
    args.peers = atoi(argv[6]);
    args.warm = args.count / 10 + 1;
    args.total = args.warm + args.count;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return args;
}

static inline int is_role(const args_t *args, const char *role) { return !strcmp(args->role, role); }

static inline void say(const char *line) {
    puts(line);
    fflush(stdout);
}

static inline void wait_go(void) {
    char byte;
    MUST(read(0, &byte, 1) >= 0);
}

static inline void wait_end(void) {
    char bytes[64];
    while (read(0, bytes, sizeof bytes) > 0) {
    }
}

/* Memory of its own that this process holds, in bytes. */
static inline double held_bytes(void) {
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Anonymous: %ld", &kib);
    if (file) fclose(file);
    return kib * 1024.0;
}

/* Context switches of all threads, voluntary or not. */
static inline uint64_t switches(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_nvcsw + used.ru_nivcsw);
}

/* What a part of a run used. */
typedef struct {
    uint64_t at_ns, cpu_ns, switches;
} meter_t;

static inline meter_t begin(void) {
    return (meter_t){now_ns(), clock_ns(CLOCK_PROCESS_CPUTIME_ID), switches()};
}

/* Ends a JSON object that was begun. */
static inline void report_used(meter_t meter) {
    printf("\"seconds\":%.9f,\"cpu_s\":%.9f,\"switches\":%" PRIu64 "}\n",
           (now_ns() - meter.at_ns) / 1e9,
           (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - meter.cpu_ns) / 1e9,
           switches() - meter.switches);
    fflush(stdout);
}

static inline void report_stream(meter_t meter, uint64_t count) {
    printf("{\"count\":%" PRIu64 ",", count);
    report_used(meter);
}

static inline void report_fanout(meter_t meter, uint64_t delivered, uint64_t expected, uint64_t timed) {
    printf("{\"delivered\":%" PRIu64 ",\"expected\":%" PRIu64 ",\"count\":%" PRIu64 ",", delivered,
           expected, timed);
    report_used(meter);
}

static inline void report_idle(meter_t meter, const args_t *args, double grown, uint64_t greetings_ns) {
    printf("{\"count\":%" PRIu64 ",\"bytes_per_peer\":%.1f,", args->count, grown / args->peers);
    if (args->peers > 1) printf("\"set_ups_s\":%.1f,", (args->peers - 1) / (greetings_ns / 1e9));
    report_used(meter);
}

static inline void report_silent(meter_t meter, const args_t *args, double grown) {
    printf("{\"bytes_per_peer\":%.1f,", grown / args->peers);
    report_used(meter);
}

/* Times of round trips. */
typedef struct {
    uint64_t *ns;
    uint64_t done, first_ns;
    meter_t meter;
} times_t;

static inline times_t new_times(const args_t *args) {
    times_t times = {.ns = malloc(args->count * sizeof *times.ns), .meter = begin()};
    MUST(times.ns);
    return times;
}

static inline void add_time(times_t *times, const args_t *args, uint64_t asked_ns) {
    uint64_t now = now_ns();
    if (!times->done) times->first_ns = now - args->started_ns;
    if (times->done >= args->warm) times->ns[times->done - args->warm] = now - asked_ns;
    if (++times->done == args->warm) times->meter = begin();
}

static inline int compare_ns(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static inline double quantile_us(const times_t *times, uint64_t count, double quantile) {
    uint64_t index = (uint64_t)(count * quantile + 0.999999);
    return times->ns[index ? index - 1 : 0] / 1e3;
}

static inline void report_times(times_t *times, const args_t *args) {
    meter_t meter = times->meter;
    uint64_t n = args->count;
    qsort(times->ns, n, sizeof *times->ns, compare_ns);
    printf("{\"count\":%" PRIu64 ",\"min_us\":%.3f,\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,"
           "\"p99_9_us\":%.3f,\"max_us\":%.3f,\"first_reply_us\":%.3f,",
           n, quantile_us(times, n, 0), quantile_us(times, n, .5), quantile_us(times, n, .9),
           quantile_us(times, n, .99), quantile_us(times, n, .999), quantile_us(times, n, 1),
           times->first_ns / 1e3);
    report_used(meter);
}
