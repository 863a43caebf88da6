/* libzmq: REQ/REP, PUSH/PULL, XPUB that does not drop and SUB. */
#include "driver.h"
#include <zmq.h>

enum { SOCKETS_MAX = 5000, TURN = 256, NAP_MS = 10000, SETTLE_US = 50000 };

static void *context;
static char url[64];

static void *bound(int type) {
    void *socket = zmq_socket(context, type);
    MUST(socket && !zmq_bind(socket, url));
    return socket;
}

static void *connected(int type) {
    void *socket = zmq_socket(context, type);
    MUST(socket && !zmq_connect(socket, url));
    return socket;
}

static void send_bytes(void *socket, size_t size) {
    zmq_msg_t message;
    MUST(!zmq_msg_init_size(&message, size));
    memset(zmq_msg_data(&message), 'x', size);
    MUST(zmq_msg_send(&message, socket, 0) >= 0);
}

static void receive_bytes(void *socket, size_t size) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    MUST(zmq_msg_recv(&message, socket, 0) == (int)size);
    zmq_msg_close(&message);
}

static void serve_trips(const args_t *args) {
    void *socket = bound(ZMQ_REP);
    say("READY");
    zmq_msg_t message;
    for (uint64_t i = 0; i < args->total; i++) {
        zmq_msg_init(&message);
        MUST(zmq_msg_recv(&message, socket, 0) >= 0);
        MUST(zmq_msg_send(&message, socket, 0) >= 0);
    }
    say("{}");
    wait_end();
}

static void measure_trips(const args_t *args) {
    void *socket = connected(ZMQ_REQ);
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
static meter_t receive_all(const args_t *args, void *socket) {
    meter_t meter = begin();
    for (uint64_t i = 0; i < args->total; i++) {
        if (i == args->warm) meter = begin();
        receive_bytes(socket, args->size);
    }
    return meter;
}

static meter_t send_all(const args_t *args, void *socket) {
    meter_t meter = begin();
    for (uint64_t i = 0; i < args->total; i++) {
        if (i == args->warm) meter = begin();
        send_bytes(socket, args->size);
    }
    return meter;
}

static void receive(const args_t *args) {
    void *socket = bound(ZMQ_PULL);
    say("READY");
    report_stream(receive_all(args, socket), args->count);
}

static void stream(const args_t *args) {
    void *socket = connected(ZMQ_PUSH);
    usleep(SETTLE_US);
    report_stream(send_all(args, socket), args->count);
    wait_end();
}

/* An empty message says the end. */
static void publish(const args_t *args) {
    void *socket = zmq_socket(context, ZMQ_XPUB);
    int on = 1;
    MUST(!zmq_setsockopt(socket, ZMQ_XPUB_VERBOSE, &on, sizeof on));
    MUST(!zmq_setsockopt(socket, ZMQ_XPUB_NODROP, &on, sizeof on));
    MUST(!zmq_bind(socket, url));
    say("READY");
    for (int i = 0; i < args->peers; i++) receive_bytes(socket, 1);
    meter_t meter = send_all(args, socket);
    report_stream(meter, args->count * (uint64_t)args->peers);
    send_bytes(socket, 0);
    wait_end();
}

static void subscribe(const args_t *args) {
    zmq_pollitem_t *seats = calloc((size_t)args->peers, sizeof *seats);
    MUST(seats);
    for (int i = 0; i < args->peers; i++) {
        void *socket = zmq_socket(context, ZMQ_SUB);
        MUST(socket && !zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) && !zmq_connect(socket, url));
        seats[i] = (zmq_pollitem_t){.socket = socket, .events = ZMQ_POLLIN};
    }
    uint64_t came = 0, before = 0, warm = args->warm * (uint64_t)args->peers;
    int ended = 0;
    meter_t meter = begin();
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (ended < args->peers && zmq_poll(seats, args->peers, NAP_MS) > 0) {
        for (int i = 0; i < args->peers; i++) {
            for (int turn = 0; seats[i].revents && turn < TURN; turn++) {
                int size = zmq_msg_recv(&message, seats[i].socket, ZMQ_DONTWAIT);
                if (size < 0) break;
                if (size) came++;
                else ended++;
            }
        }
        if (!before && came >= warm) meter = begin(), before = came;
    }
    report_fanout(meter, came, args->total * (uint64_t)args->peers, came - before);
}

static void serve_silent(const args_t *args) {
    void *socket = bound(ZMQ_PULL);
    say("READY");
    receive_bytes(socket, 1);
    double before = held_bytes();
    receive_bytes(socket, 1);
    uint64_t first = now_ns();
    for (int i = 1; i < args->peers; i++) receive_bytes(socket, 1);
    uint64_t greetings = now_ns() - first;
    double grown = held_bytes() - before;
    say("GO");
    report_idle(receive_all(args, socket), args, grown, greetings);
}

static void *greet(void) {
    void *socket = connected(ZMQ_PUSH);
    send_bytes(socket, 1);
    return socket;
}

static void connect_silent(const args_t *args) {
    void *active = greet();
    usleep(SETTLE_US);
    double before = held_bytes();
    for (int i = 0; i < args->peers; i++) greet();
    wait_go();
    double grown = held_bytes() - before;
    report_silent(send_all(args, active), args, grown);
    wait_end();
}

int main(int argc, char **argv) {
    args_t args = read_args(argc, argv);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", args.port);
    context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, SOCKETS_MAX);
    if (is_role(&args, "lat-server")) serve_trips(&args);
    else if (is_role(&args, "lat-client")) measure_trips(&args);
    else if (is_role(&args, "bw-server")) receive(&args);
    else if (is_role(&args, "bw-client")) stream(&args);
    else if (is_role(&args, "fanout-server")) publish(&args);
    else if (is_role(&args, "fanout-client")) subscribe(&args);
    else if (is_role(&args, "idle-server")) serve_silent(&args);
    else if (is_role(&args, "idle-client")) connect_silent(&args);
    else FAIL("no such role: %s", args.role);
    /* The process ends as it is: closing a thousand sockets in order measures nothing. */
    _exit(0);
}
