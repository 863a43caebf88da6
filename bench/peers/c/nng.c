/* nng 1.x: req/rep, push/pull, pub/sub. Its publisher drops, which shows as delivered < expected. */
#include "driver.h"
#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <poll.h>
#include <stdatomic.h>

enum { QUEUE = 128, LONG_QUEUE = 8192, SETTLE_US = 50000, END_PERIOD_MS = 2 };

static char url[64];

static void ok(int error) {
    if (error) FAIL("%s", nng_strerror(error));
}

static void tune(nng_socket socket) {
    ok(nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0));
    /* Not every protocol has both queues. */
    nng_socket_set_int(socket, NNG_OPT_SENDBUF, QUEUE);
    nng_socket_set_int(socket, NNG_OPT_RECVBUF, QUEUE);
}

static nng_socket bound(int (*open)(nng_socket *)) {
    nng_socket socket;
    ok(open(&socket));
    tune(socket);
    ok(nng_listen(socket, url, NULL, 0));
    return socket;
}

static nng_socket connected(int (*open)(nng_socket *)) {
    nng_socket socket;
    ok(open(&socket));
    tune(socket);
    ok(nng_dial(socket, url, NULL, 0));
    return socket;
}

static void send_bytes(nng_socket socket, size_t size) {
    nng_msg *message;
    ok(nng_msg_alloc(&message, size));
    memset(nng_msg_body(message), 'x', size);
    ok(nng_sendmsg(socket, message, 0));
}

static void receive_bytes(nng_socket socket, size_t size) {
    nng_msg *message;
    ok(nng_recvmsg(socket, &message, 0));
    MUST(nng_msg_len(message) == size);
    nng_msg_free(message);
}

static void serve_trips(const args_t *args) {
    nng_socket socket = bound(nng_rep0_open);
    say("READY");
    for (uint64_t i = 0; i < args->total; i++) {
        nng_msg *message;
        ok(nng_recvmsg(socket, &message, 0));
        ok(nng_sendmsg(socket, message, 0));
    }
    say("{}");
    wait_end();
}

static void measure_trips(const args_t *args) {
    nng_socket socket = connected(nng_req0_open);
    times_t times = new_times(args);
    for (uint64_t i = 0; i < args->total; i++) {
        uint64_t asked = now_ns();
        send_bytes(socket, args->size);
        receive_bytes(socket, args->size);
        add_time(&times, args, asked);
    }
    report_times(&times, args);
}

/* The meter has run since the last message that warms up. */
static meter_t receive_all(const args_t *args, nng_socket socket) {
    meter_t meter = begin();
    for (uint64_t i = 0; i < args->total; i++) {
        if (i == args->warm) meter = begin();
        receive_bytes(socket, args->size);
    }
    return meter;
}

static meter_t send_all(const args_t *args, nng_socket socket) {
    meter_t meter = begin();
    for (uint64_t i = 0; i < args->total; i++) {
        if (i == args->warm) meter = begin();
        send_bytes(socket, args->size);
    }
    return meter;
}

static void receive(const args_t *args) {
    nng_socket socket = bound(nng_pull0_open);
    say("READY");
    report_stream(receive_all(args, socket), args->count);
}

static void stream(const args_t *args) {
    nng_socket socket = connected(nng_push0_open);
    usleep(SETTLE_US);
    report_stream(send_all(args, socket), args->count);
    wait_end();
}

static atomic_int pipes;

static void count_pipe(nng_pipe pipe, nng_pipe_ev event, void *unused) {
    (void)pipe, (void)event, (void)unused;
    atomic_fetch_add(&pipes, 1);
}

/* The end may be dropped, too, so it is said until nobody needs it any more. */
static void publish(const args_t *args) {
    nng_socket socket;
    ok(nng_pub0_open(&socket));
    ok(nng_socket_set_int(socket, NNG_OPT_SENDBUF, LONG_QUEUE));
    ok(nng_pipe_notify(socket, NNG_PIPE_EV_ADD_POST, count_pipe, NULL));
    ok(nng_listen(socket, url, NULL, 0));
    say("READY");
    while (atomic_load(&pipes) < args->peers) usleep(1000);
    usleep(SETTLE_US);
    meter_t meter = send_all(args, socket);
    report_stream(meter, args->count * (uint64_t)args->peers);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (!poll(&input, 1, END_PERIOD_MS)) send_bytes(socket, 0);
}

typedef struct {
    nng_socket socket;
    nng_aio *aio;
    atomic_int ended;
} seat_t;

static atomic_int ended;
static atomic_uint_fast64_t came, before;
static atomic_int has_begun;
static uint64_t warm;
static meter_t first;

static void take(void *of) {
    seat_t *seat = of;
    if (nng_aio_result(seat->aio)) return;
    nng_msg *message = nng_aio_get_msg(seat->aio);
    if (nng_msg_len(message)) {
        uint64_t now = atomic_fetch_add(&came, 1) + 1;
        if (now >= warm && !atomic_exchange(&has_begun, 1)) first = begin(), atomic_store(&before, now);
    } else if (!atomic_exchange(&seat->ended, 1)) {
        atomic_fetch_add(&ended, 1);
    }
    nng_msg_free(message);
    nng_recv_aio(seat->socket, seat->aio);
}

static void subscribe(const args_t *args) {
    seat_t *seats = calloc((size_t)args->peers, sizeof *seats);
    MUST(seats);
    warm = args->warm * (uint64_t)args->peers;
    first = begin();
    for (int i = 0; i < args->peers; i++) {
        seat_t *seat = &seats[i];
        ok(nng_sub0_open(&seat->socket));
        ok(nng_socket_set_size(seat->socket, NNG_OPT_RECVMAXSZ, 0));
        ok(nng_socket_set_int(seat->socket, NNG_OPT_RECVBUF, LONG_QUEUE));
        ok(nng_socket_set(seat->socket, NNG_OPT_SUB_SUBSCRIBE, "", 0));
        ok(nng_aio_alloc(&seat->aio, take, seat));
        nng_recv_aio(seat->socket, seat->aio);
        ok(nng_dial(seat->socket, url, NULL, 0));
    }
    while (atomic_load(&ended) < args->peers) usleep(1000);
    uint64_t all = atomic_load(&came);
    report_fanout(first, all, args->total * (uint64_t)args->peers, all - atomic_load(&before));
}

static void serve_silent(const args_t *args) {
    nng_socket socket = bound(nng_pull0_open);
    say("READY");
    receive_bytes(socket, 1);
    double held = held_bytes();
    receive_bytes(socket, 1);
    uint64_t since = now_ns();
    for (int i = 1; i < args->peers; i++) receive_bytes(socket, 1);
    uint64_t greetings = now_ns() - since;
    double grown = held_bytes() - held;
    say("GO");
    report_idle(receive_all(args, socket), args, grown, greetings);
}

static nng_socket greet(void) {
    nng_socket socket = connected(nng_push0_open);
    send_bytes(socket, 1);
    return socket;
}

static void connect_silent(const args_t *args) {
    nng_socket active = greet();
    usleep(SETTLE_US);
    double held = held_bytes();
    for (int i = 0; i < args->peers; i++) greet();
    wait_go();
    double grown = held_bytes() - held;
    report_silent(send_all(args, active), args, grown);
    wait_end();
}

int main(int argc, char **argv) {
    args_t args = read_args(argc, argv);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", args.port);
    if (is_role(&args, "lat-server")) serve_trips(&args);
    else if (is_role(&args, "lat-client")) measure_trips(&args);
    else if (is_role(&args, "bw-server")) receive(&args);
    else if (is_role(&args, "bw-client")) stream(&args);
    else if (is_role(&args, "fanout-server")) publish(&args);
    else if (is_role(&args, "fanout-client")) subscribe(&args);
    else if (is_role(&args, "idle-server")) serve_silent(&args);
    else if (is_role(&args, "idle-client")) connect_silent(&args);
    else FAIL("no such role: %s", args.role);
    /* The process ends as it is: its threads would keep it. */
    _exit(0);
}
