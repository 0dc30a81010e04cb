/* Runs the machine's side by commands, one a line, for a test that compares it with the one in Rust
 * (crates/port/src/serve/c_port.rs). Numbers are hexadecimal; those of floats are their bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tautline.h"

static char *word(void) { return strtok(NULL, " \n"); }

static uint64_t integer(void) { return strtoull(word(), NULL, 16); }

static float number(void) {
    uint32_t bits = (uint32_t)integer();
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double wide(void) {
    uint64_t bits = integer();
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static size_t bytes_of(uint8_t *bytes) {
    size_t length = 0;
    for (char *at = word(); at && at[0] && at[1]; at += 2, length++) {
        char pair[3] = {at[0], at[1], 0};
        bytes[length] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return length;
}

static void print_bytes(const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) printf("%02x", bytes[i]);
    printf("\n");
}

static tautline_machine machine_of_words(void) {
    tautline_machine it = tautline_unknown_machine();
    it.speed = number();
    it.sideways_speed = number();
    it.yaw_rate = number();
    it.steering_angle = number();
    it.gear = (uint8_t)integer();
    it.notices = (uint32_t)integer();
    it.faults = (uint32_t)integer();
    it.x = number();
    it.y = number();
    it.heading = number();
    it.latitude = wide();
    it.longitude = wide();
    it.height = number();
    for (size_t i = 0; i < TAUTLINE_AXES; i++) it.axes[i] = number();
    it.actions = (uint32_t)integer();
    it.answers_number = (uint32_t)integer();
    it.answer = (uint8_t)integer();
    it.description = (uint32_t)integer();
    it.acceleration_along = number();
    it.acceleration_across = number();
    it.charge = number();
    return it;
}

static tautline_description entry_of_words(void) {
    tautline_description it;
    memset(&it, 0, sizeof it);
    it.kind = (uint8_t)integer();
    it.form = (uint8_t)integer();
    it.on_stop = (uint8_t)integer();
    it.flags = (uint8_t)integer();
    bytes_of((uint8_t *)it.name);
    bytes_of((uint8_t *)it.unit);
    it.low = number();
    it.high = number();
    it.rate = number();
    it.stop = number();
    it.warn_low = number();
    it.warn_high = number();
    it.alarm_low = number();
    it.alarm_high = number();
    return it;
}

static void print_control(const tautline_control *it) {
    printf(" %x %x %x %x %x %x %x %x %x", it->mode, bits_of(it->steering), bits_of(it->throttle),
           bits_of(it->brake), it->gear, it->parking_brake, bits_of(it->forward),
           bits_of(it->sideways), bits_of(it->yaw_rate));
    for (size_t i = 0; i < TAUTLINE_AXES; i++) printf(" %x", bits_of(it->axes[i]));
    printf(" %x %x %x\n", (unsigned)it->actions, (unsigned)it->requests_number,
           it->requests_action);
}

static tautline_description entries[TAUTLINE_AXES + TAUTLINE_ACTIONS + TAUTLINE_VALUES];
static size_t entry_count;
static tautline_follower follower;
static tautline_receiver receiver;

static void run(const char *command) {
    uint8_t bytes[2048];
    tautline_control control;
    memset(&control, 0, sizeof control);
    if (!strcmp(command, "machine")) {
        uint16_t counter = (uint16_t)integer();
        uint64_t now = integer();
        tautline_machine machine = machine_of_words();
        print_bytes(bytes, tautline_encode_machine(bytes, &machine, &counter, now));
    } else if (!strcmp(command, "value")) {
        uint16_t counter = (uint16_t)integer();
        uint64_t now = integer();
        tautline_value value;
        memset(&value, 0, sizeof value);
        value.revision = (uint32_t)integer();
        value.index = (uint8_t)integer();
        value.form = (uint8_t)integer();
        value.number = number();
        value.length = (uint8_t)bytes_of((uint8_t *)value.text);
        print_bytes(bytes, tautline_encode_value(bytes, &value, &counter, now));
    } else if (!strcmp(command, "entry")) {
        entries[entry_count++] = entry_of_words();
    } else if (!strcmp(command, "describe")) {
        uint16_t counter = (uint16_t)integer();
        uint64_t now = integer();
        tautline_describe(entries, entry_count);
        for (size_t i = 0; i < entry_count; i++) {
            size_t length = tautline_encode_description(bytes, &entries[i], &counter, now);
            print_bytes(bytes, length);
        }
    } else if (!strcmp(command, "forget")) {
        entry_count = 0;
        memset(&receiver, 0, sizeof receiver);
    } else if (!strcmp(command, "decode")) {
        uint64_t source = 0;
        size_t length = bytes_of(bytes);
        tautline_result result = tautline_decode(&receiver, bytes, length, &control, &source);
        printf("%x %llx", result, (unsigned long long)source);
        print_control(&control);
    } else if (!strcmp(command, "start")) {
        tautline_start(&follower, tautline_default_settings(), entries, entry_count);
    } else if (!strcmp(command, "receive")) {
        size_t length = bytes_of(bytes);
        tautline_receive(&follower, bytes, length);
    } else if (!strcmp(command, "end")) {
        tautline_end(&follower, integer());
    } else if (!strcmp(command, "turn")) {
        uint64_t now = integer();
        uint8_t action;
        tautline_machine machine = tautline_unknown_machine();
        machine.speed = number();
        machine.sideways_speed = number();
        machine.yaw_rate = number();
        tautline_turn(&follower, now);
        bool is_followed = tautline_controls(&follower, &machine, now, &control);
        if (tautline_request(&follower, now, &action)) tautline_answer(&follower, action % 2);
        tautline_report(&follower, &machine, now);
        printf("%x %x %x %x %x", is_followed, (unsigned)machine.notices,
               (unsigned)machine.answers_number, machine.answer,
               tautline_may_leave(&follower, &machine, now));
        print_control(&control);
    } else if (!strcmp(command, "leave")) {
        tautline_leave(&follower, &control);
        print_control(&control);
    } else {
        exit(3);
    }
}

int main(void) {
    static char line[8192];
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    while (fgets(line, sizeof line, stdin)) run(strtok(line, " \n"));
    return 0;
}
