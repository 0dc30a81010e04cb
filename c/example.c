/* A toy machine behind Tautline's guard, on POSIX: a two-wheeled robot with a pan axis, a horn and
 * a battery. usage: example ADDRESS    where `tautline guard` listens for the machine: a path, or
 * host:port for UDP on IPv4. SIGTERM stops the robot and ends the program.
 *
 *     cc -std=c99 -O2 -o example example.c tautline.c -lm
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tautline.h"

#define PERIOD_NS 10000000
#define ENTRIES (sizeof entries / sizeof entries[0])

static tautline_description entries[] = {
    {.kind = TAUTLINE_ENTRY_AXIS, .form = TAUTLINE_AXIS_POSITION, .on_stop = TAUTLINE_AXIS_HOLD,
     .name = "pan", .unit = "rad", .low = -1.5f, .high = 1.5f, .rate = 1, .warn_low = NAN,
     .warn_high = NAN, .alarm_low = NAN, .alarm_high = NAN},
    {.kind = TAUTLINE_ENTRY_ACTION, .form = TAUTLINE_ACTION_MOMENTARY, .flags = 1, .name = "horn",
     .warn_low = NAN, .warn_high = NAN, .alarm_low = NAN, .alarm_high = NAN},
    {.kind = TAUTLINE_ENTRY_ACTION, .form = TAUTLINE_ACTION_REQUEST, .name = "dock",
     .warn_low = NAN, .warn_high = NAN, .alarm_low = NAN, .alarm_high = NAN},
    {.kind = TAUTLINE_ENTRY_VALUE, .form = TAUTLINE_READING_NUMBER, .name = "battery", .unit = "V",
     .low = 20, .high = 30, .warn_low = 23, .warn_high = NAN, .alarm_low = 22, .alarm_high = NAN},
};

static volatile sig_atomic_t is_asked;

static void ask(int number) {
    (void)number;
    is_asked = 1;
}

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Fills in the guard's address; returns its length, or 0 if it is none. */
static socklen_t parse(const char *text, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    if (strchr(text, '/')) {
        struct sockaddr_un *unix_address = (struct sockaddr_un *)address;
        if (strlen(text) >= sizeof unix_address->sun_path) return 0;
        unix_address->sun_family = AF_UNIX;
        strcpy(unix_address->sun_path, text);
        return sizeof *unix_address;
    }
    struct sockaddr_in *internet = (struct sockaddr_in *)address;
    const char *port = strrchr(text, ':');
    char host[64] = "";
    if (!port || (size_t)(port - text) >= sizeof host) return 0;
    memcpy(host, text, (size_t)(port - text));
    internet->sin_family = AF_INET;
    internet->sin_port = htons((uint16_t)atoi(port + 1));
    return inet_pton(AF_INET, host, &internet->sin_addr) == 1 ? sizeof *internet : 0;
}

/* Opens a socket that the guard can answer: a Unix socket needs a name. */
static int open_socket(sa_family_t family) {
    int fd = socket(family, SOCK_DGRAM, 0);
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) return -1;
    if (family != AF_UNIX) return fd;
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    snprintf(own.sun_path, sizeof own.sun_path, "/tmp/tautline-example-%d", (int)getpid());
    unlink(own.sun_path);
    return bind(fd, (struct sockaddr *)&own, sizeof own) < 0 ? -1 : fd;
}

int main(int count, char **arguments) {
    struct sockaddr_storage guard;
    socklen_t length = count == 2 ? parse(arguments[1], &guard) : 0;
    int fd = length ? open_socket(guard.ss_family) : -1;
    if (fd < 0) {
        fprintf(stderr, "usage: example ADDRESS: a path, or host:port\n");
        return 2;
    }
    signal(SIGTERM, ask);
    tautline_describe(entries, ENTRIES);
    tautline_follower follower;
    tautline_start(&follower, tautline_default_settings(), entries, ENTRIES);
    uint16_t counters[3] = {0, 0, 0};
    tautline_control control;
    tautline_machine machine = tautline_unknown_machine();
    machine.speed = machine.yaw_rate = machine.axes[0] = 0;
    for (size_t turn = 0;; turn++) {
        uint8_t bytes[256];
        for (ssize_t got; (got = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
            tautline_receive(&follower, bytes, (size_t)got);
        }
        uint64_t now = clock_ns();
        tautline_turn(&follower, now);
        if (is_asked) tautline_end(&follower, now);
        if (tautline_may_leave(&follower, &machine, now)) break;
        tautline_controls(&follower, &machine, now, &control);
        /* The actuators, and what they measure: this robot follows its set points at once. */
        machine.speed = control.forward;
        machine.yaw_rate = control.yaw_rate;
        if (!isnan(control.axes[0])) machine.axes[0] = control.axes[0];
        machine.actions = control.actions;
        machine.notices = control.parking_brake ? TAUTLINE_NOTICE_PARKING_BRAKE : 0;
        uint8_t action;
        if (tautline_request(&follower, now, &action)) tautline_answer(&follower, action == 1);
        tautline_report(&follower, &machine, now);
        /* Without a guard sending fails; the next turn sends again. */
        size_t size = tautline_encode_machine(bytes, &machine, &counters[0], now);
        sendto(fd, bytes, size, 0, (struct sockaddr *)&guard, length);
        size = tautline_encode_description(bytes, &entries[turn % ENTRIES], &counters[1], now);
        sendto(fd, bytes, size, 0, (struct sockaddr *)&guard, length);
        tautline_value battery = {.revision = entries[0].revision, .number = 25.5f};
        size = tautline_encode_value(bytes, &battery, &counters[2], now);
        if (turn % 100 == 0) sendto(fd, bytes, size, 0, (struct sockaddr *)&guard, length);
        struct timespec rest = {0, PERIOD_NS - (long)(clock_ns() - now) % PERIOD_NS};
        nanosleep(&rest, NULL);
    }
    tautline_leave(&follower, &control);
    return 0;
}
