/* The machine's side of Tautline's guard: see tautline.h. */
#include "tautline.h"

#include <math.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define PERIOD (10 * MS)          /* of the guard's frames */
#define LEFT_OUT_MAX (80 * MS)    /* of own pauses, out of the guard's silence */
#define ANEW (1000 * MS)          /* of silence, after which the guard may be another process */
#define DRIFT_DIVISOR 5000        /* clocks drift by 200 ppm at most */
#define AGREE ((int64_t)MS)       /* between early frames that agree */
#define EARLY_SPAN (2000 * MS)    /* within which early frames set a new minimum delay */
#define EARLY_COUNT 3             /* early frames do so */
#define SILENT_TOLD (100 * MS)    /* after which a silence is no longer reported */
#define END_MAX (30000 * MS)      /* after which a moving machine is left */
#define STANDING 0.05f            /* m/s and rad/s, below which the machine stands */
#define SPEED_MOST 150.0f         /* m/s, faster than any machine driven by sight */
#define YAW_RATE_MOST 100.0f      /* rad/s, sixteen turns a second */
#define LOST_MAX 9                /* frames that may be missing before an accepted one */
#define POLYNOMIAL 0xC8DF352Fu    /* of CRC-32/P4, reflected */
#define HEADER 20                 /* bytes before the payload */
#define KIND_AT 27                /* of a description's entry, from which on its revision counts */

static void put_u8(uint8_t *at, uint8_t value) { *at = value; }

static void put_u16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put_u32(uint8_t *at, uint32_t value) {
    put_u16(at, (uint16_t)(value >> 16));
    put_u16(at + 2, (uint16_t)value);
}

static void put_u64(uint8_t *at, uint64_t value) {
    put_u32(at, (uint32_t)(value >> 32));
    put_u32(at + 4, (uint32_t)value);
}

static void put_f32(uint8_t *at, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u32(at, bits);
}

static void put_f64(uint8_t *at, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(at, bits);
}

static uint8_t get_u8(const uint8_t *at) { return *at; }

static uint16_t get_u16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static uint32_t get_u32(const uint8_t *at) {
    return (uint32_t)get_u16(at) << 16 | get_u16(at + 2);
}

static uint64_t get_u64(const uint8_t *at) {
    return (uint64_t)get_u32(at) << 32 | get_u32(at + 4);
}

static float get_f32(const uint8_t *at) {
    uint32_t bits = get_u32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The frames; written by `cargo xtask frames`. */
static void get_control(const uint8_t *at, tautline_control *control) {
    control->mode = get_u8(at + 20);
    control->steering = get_f32(at + 21);
    control->throttle = get_f32(at + 25);
    control->brake = get_f32(at + 29);
    control->gear = get_u8(at + 33);
    control->parking_brake = get_u8(at + 34);
    control->forward = get_f32(at + 35);
    control->sideways = get_f32(at + 39);
    control->yaw_rate = get_f32(at + 43);
    for (size_t i = 0; i < 16; i++) control->axes[i] = get_f32(at + 47 + 4 * i);
    control->actions = get_u32(at + 111);
    control->requests_number = get_u32(at + 115);
    control->requests_action = get_u8(at + 119);
}

static void put_machine(uint8_t *at, const tautline_machine *machine) {
    put_f32(at + 20, machine->speed);
    put_f32(at + 24, machine->sideways_speed);
    put_f32(at + 28, machine->yaw_rate);
    put_f32(at + 32, machine->steering_angle);
    put_u8(at + 36, machine->gear);
    put_u32(at + 37, machine->notices);
    put_u32(at + 41, machine->faults);
    put_f32(at + 45, machine->x);
    put_f32(at + 49, machine->y);
    put_f32(at + 53, machine->heading);
    put_f64(at + 57, machine->latitude);
    put_f64(at + 65, machine->longitude);
    put_f32(at + 73, machine->height);
    for (size_t i = 0; i < 16; i++) put_f32(at + 77 + 4 * i, machine->axes[i]);
    put_u32(at + 141, machine->actions);
    put_u32(at + 145, machine->answers_number);
    put_u8(at + 149, machine->answer);
    put_u32(at + 150, machine->description);
    put_f32(at + 154, machine->acceleration_along);
    put_f32(at + 158, machine->acceleration_across);
    put_f32(at + 162, machine->charge);
}

static void put_description(uint8_t *at, const tautline_description *description) {
    put_u32(at + 20, description->revision);
    put_u8(at + 24, description->axis_count);
    put_u8(at + 25, description->action_count);
    put_u8(at + 26, description->value_count);
    put_u8(at + 27, description->kind);
    put_u8(at + 28, description->index);
    put_u8(at + 29, description->form);
    put_u8(at + 30, description->on_stop);
    put_u8(at + 31, description->flags);
    memcpy(at + 32, description->name, 24);
    memcpy(at + 56, description->unit, 12);
    put_f32(at + 68, description->low);
    put_f32(at + 72, description->high);
    put_f32(at + 76, description->rate);
    put_f32(at + 80, description->stop);
    put_f32(at + 84, description->warn_low);
    put_f32(at + 88, description->warn_high);
    put_f32(at + 92, description->alarm_low);
    put_f32(at + 96, description->alarm_high);
}

static void put_value(uint8_t *at, const tautline_value *value) {
    put_u32(at + 20, value->revision);
    put_u8(at + 24, value->index);
    put_u8(at + 25, value->form);
    put_f32(at + 26, value->number);
    put_u8(at + 30, value->length);
    memcpy(at + 31, value->text, 64);
}

/* End of the frames. */

static uint32_t crc_on(uint32_t crc, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    }
    return crc;
}

/* Returns the CRC over all bytes but the CRC's own. */
static uint32_t crc_of(const uint8_t *bytes, size_t length) {
    return ~crc_on(crc_on(UINT32_MAX, bytes, 8), bytes + 12, length - 12);
}

static size_t seal(uint8_t *bytes, size_t length, uint32_t id, uint16_t *counter, uint64_t now) {
    put_u16(bytes, (uint16_t)length);
    put_u16(bytes + 2, (*counter)++);
    put_u32(bytes + 4, id);
    put_u64(bytes + 12, now);
    put_u32(bytes + 8, crc_of(bytes, length));
    return length;
}

size_t tautline_encode_machine(uint8_t bytes[TAUTLINE_MACHINE_BYTES],
                               const tautline_machine *machine, uint16_t *counter, uint64_t now) {
    put_machine(bytes, machine);
    return seal(bytes, TAUTLINE_MACHINE_BYTES, TAUTLINE_MACHINE_ID, counter, now);
}

size_t tautline_encode_description(uint8_t bytes[TAUTLINE_DESCRIPTION_BYTES],
                                   const tautline_description *entry, uint16_t *counter,
                                   uint64_t now) {
    put_description(bytes, entry);
    return seal(bytes, TAUTLINE_DESCRIPTION_BYTES, TAUTLINE_DESCRIPTION_ID, counter, now);
}

size_t tautline_encode_value(uint8_t bytes[TAUTLINE_VALUE_BYTES], const tautline_value *value,
                             uint16_t *counter, uint64_t now) {
    put_value(bytes, value);
    return seal(bytes, TAUTLINE_VALUE_BYTES, TAUTLINE_VALUE_ID, counter, now);
}

tautline_machine tautline_unknown_machine(void) {
    tautline_machine machine;
    memset(&machine, 0, sizeof machine);
    machine.speed = machine.sideways_speed = machine.yaw_rate = machine.steering_angle = NAN;
    machine.x = machine.y = machine.heading = machine.height = NAN;
    machine.latitude = machine.longitude = NAN;
    for (size_t i = 0; i < TAUTLINE_AXES; i++) machine.axes[i] = NAN;
    machine.acceleration_along = machine.acceleration_across = machine.charge = NAN;
    return machine;
}

uint32_t tautline_describe(tautline_description *entries, size_t count) {
    uint8_t counts[3] = {0, 0, 0};
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) entries[i].index = counts[entries[i].kind % 3]++;
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[TAUTLINE_DESCRIPTION_BYTES];
        put_description(bytes, &entries[i]);
        crc = crc_on(crc, bytes + KIND_AT, sizeof bytes - KIND_AT);
    }
    uint32_t revision = ~crc == 0 ? 1 : ~crc;
    for (size_t i = 0; i < count; i++) {
        entries[i].revision = revision;
        entries[i].axis_count = counts[TAUTLINE_ENTRY_AXIS];
        entries[i].action_count = counts[TAUTLINE_ENTRY_ACTION];
        entries[i].value_count = counts[TAUTLINE_ENTRY_VALUE];
    }
    return count == 0 ? 0 : revision;
}

/* Returns the value in its range; `otherwise` for NaN. */
static float within(float value, float least, float most, float otherwise) {
    if (isnan(value)) return otherwise;
    return value < least ? least : value > most ? most : value;
}

/* Limits set points to their ranges; returns whether the other fields are valid. */
static bool sane(tautline_control *control) {
    control->steering = within(control->steering, -1, 1, 0);
    control->throttle = within(control->throttle, 0, 1, 0);
    control->brake = within(control->brake, 0, 1, 1);
    control->forward = within(control->forward, -SPEED_MOST, SPEED_MOST, 0);
    control->sideways = within(control->sideways, -SPEED_MOST, SPEED_MOST, 0);
    control->yaw_rate = within(control->yaw_rate, -YAW_RATE_MOST, YAW_RATE_MOST, 0);
    for (size_t i = 0; i < TAUTLINE_AXES; i++) {
        if (!isfinite(control->axes[i])) control->axes[i] = NAN;
    }
    bool has_request = control->requests_number != 0;
    return control->mode <= TAUTLINE_MODE_MANOEUVRE && control->gear <= TAUTLINE_GEAR_REVERSE &&
           control->parking_brake <= 1 && control->requests_action < TAUTLINE_ACTIONS &&
           (has_request || control->requests_action == 0);
}

static tautline_result decode(tautline_receiver *receiver, const uint8_t *bytes, size_t length,
                              tautline_control *control, uint64_t *source) {
    tautline_control read;
    if (length != TAUTLINE_CONTROL_BYTES || get_u16(bytes) != length) return TAUTLINE_WRONG_LENGTH;
    if (get_u32(bytes + 4) != TAUTLINE_CONTROL_ID) return TAUTLINE_WRONG_DATA_ID;
    if (get_u32(bytes + 8) != crc_of(bytes, length)) return TAUTLINE_WRONG_CRC;
    get_control(bytes, &read);
    if (!sane(&read)) return TAUTLINE_WRONG_VALUE;
    uint16_t counter = get_u16(bytes + 2), step = (uint16_t)(counter - receiver->last);
    bool has_last = receiver->has_last;
    receiver->last = counter;
    receiver->has_last = true;
    if (has_last && step == 0) return TAUTLINE_REPEATED;
    if (has_last && step > LOST_MAX + 1) return TAUTLINE_WRONG_SEQUENCE;
    if (has_last) receiver->missing_count += step - 1u;
    *control = read;
    *source = get_u64(bytes + 12);
    return TAUTLINE_ACCEPTED;
}

tautline_result tautline_decode(tautline_receiver *receiver, const uint8_t *bytes, size_t length,
                                tautline_control *control, uint64_t *source) {
    tautline_result result = decode(receiver, bytes, length, control, source);
    receiver->refused_count += result != TAUTLINE_ACCEPTED;
    return result;
}

tautline_settings tautline_default_settings(void) {
    tautline_settings settings = {30 * MS, 0.5f, 1.0f, 2.0f};
    return settings;
}

void tautline_start(tautline_follower *follower, tautline_settings settings,
                    const tautline_description *entries, size_t count) {
    memset(follower, 0, sizeof *follower);
    follower->settings = settings;
    follower->entries = entries;
    follower->entry_count = count;
    follower->control.brake = 1;
    for (size_t i = 0; i < TAUTLINE_AXES; i++) follower->control.axes[i] = NAN;
    follower->applied = follower->control;
}

tautline_result tautline_receive(tautline_follower *follower, const uint8_t *bytes, size_t length) {
    tautline_control control;
    uint64_t source;
    tautline_result result =
        tautline_decode(&follower->receiver, bytes, length, &control, &source);
    if (result == TAUTLINE_ACCEPTED) {
        follower->newest = control;
        follower->newest_source = source;
        follower->has_newest = true;
    }
    return result;
}

static uint64_t since(uint64_t now, uint64_t earlier) { return now > earlier ? now - earlier : 0; }

/* Without double precision, which a small processor lacks: to a microsecond. */
static float seconds_of(uint64_t nanos) { return (float)(nanos / 1000) * 1e-6f; }

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Lowers the least clock difference by a frame that is early: at once by up to 1 ms, fully by three
 * early frames that agree. */
static void judge(tautline_follower *follower, int64_t difference, uint64_t now) {
    if (difference >= follower->late_least - AGREE) {
        if (difference < follower->late_least) follower->late_least = difference;
        return;
    }
    int64_t apart = difference - follower->early_least;
    bool agrees = follower->early_count > 0 && apart >= -AGREE && apart <= AGREE;
    if (!agrees) {
        follower->early_least = difference;
        follower->early_since = now;
        follower->early_count = 1;
        return;
    }
    if (difference > follower->early_least) follower->early_least = difference;
    if (++follower->early_count < EARLY_COUNT) return;
    follower->late_least = follower->early_least;
    follower->early_count = 0;
}

/* Returns a frame's delay beyond the quickest frame's. */
static uint64_t lateness(tautline_follower *follower, uint64_t source, uint64_t now) {
    int64_t difference = (int64_t)(now - source);
    uint64_t unheard = since(now, follower->late_at);
    if (follower->has_late && source >= follower->late_source && unheard < ANEW) {
        follower->late_least += (int64_t)(unheard / DRIFT_DIVISOR);
        if (since(now, follower->early_since) >= EARLY_SPAN) follower->early_count = 0;
        judge(follower, difference, now);
    } else {
        follower->late_least = difference;
        follower->early_count = 0;
    }
    follower->has_late = true;
    follower->late_source = source;
    follower->late_at = now;
    return difference > follower->late_least ? (uint64_t)(difference - follower->late_least) : 0;
}

void tautline_turn(tautline_follower *follower, uint64_t now) {
    uint64_t stood = follower->has_turned ? since(now, follower->turned_at) : 0;
    follower->turned_at = now;
    follower->has_turned = true;
    follower->left_out_newest = least_of(since(stood, PERIOD), LEFT_OUT_MAX);
    follower->left_out = least_of(follower->left_out + follower->left_out_newest, LEFT_OUT_MAX);
    if (follower->has_newest && stood < follower->settings.control_timeout) {
        follower->control = follower->newest;
        follower->heard_at = since(now, lateness(follower, follower->newest_source, now));
        follower->has_heard = true;
        follower->left_out = follower->left_out_newest;
    }
    follower->has_newest = false;
}

static bool follows(const tautline_follower *follower, uint64_t now) {
    uint64_t silence = since(since(now, follower->heard_at), follower->left_out);
    return follower->has_heard && !follower->has_ended &&
           silence <= follower->settings.control_timeout;
}

/* Returns whether the machine stands: one with unknown speed, or turning on the spot, does not. */
static bool stands(const tautline_machine *machine) {
    return fabsf(machine->speed) < STANDING && !(fabsf(machine->sideways_speed) >= STANDING) &&
           !(fabsf(machine->yaw_rate) >= STANDING);
}

/* Returns the share of a speed that is left after slowing at `rate` for `seconds`. */
static float left(float value, float rate, float seconds) {
    return value > 0 ? fmaxf(1 - rate * seconds / value, 0) : 0;
}

/* Writes the twist after slowing on its arc for `seconds`: the part that needs more time sets the
 * pace. */
static void slow(const tautline_follower *follower, float seconds, tautline_control *control) {
    const float *twist = follower->alone_twist;
    float speed = hypotf(twist[0], twist[1]);
    float share = fmaxf(left(speed, follower->settings.deceleration, seconds),
                        left(fabsf(twist[2]), follower->settings.yaw_deceleration, seconds));
    control->forward = twist[0] * share;
    control->sideways = twist[1] * share;
    control->yaw_rate = twist[2] * share;
}

/* Returns the set point of an axis `seconds` after `last`, as declared for a stop. */
static float stopped_axis(const tautline_description *axis, float last, float seconds) {
    float target = axis->on_stop == TAUTLINE_AXIS_VALUE ? axis->stop : 0;
    float most = axis->rate * seconds;
    if (isnan(last) || axis->on_stop == TAUTLINE_AXIS_RELEASE) return NAN;
    if (axis->on_stop == TAUTLINE_AXIS_HOLD) return last;
    target = within(target, axis->low, axis->high, 0);
    return fabsf(target - last) <= most ? target : last + copysignf(most, target - last);
}

/* Writes axes and actions as declared for a stop, `seconds` after those applied last. */
static void stop_declared(const tautline_follower *follower, float seconds,
                          tautline_control *control) {
    const tautline_control *last = &follower->applied;
    control->actions = 0;
    for (size_t i = 0; i < TAUTLINE_AXES; i++) control->axes[i] = NAN;
    for (size_t i = 0; i < follower->entry_count; i++) {
        const tautline_description *entry = &follower->entries[i];
        uint8_t n = entry->index;
        if (entry->kind == TAUTLINE_ENTRY_AXIS && n < TAUTLINE_AXES) {
            control->axes[n] = stopped_axis(entry, last->axes[n], seconds);
        }
        if (entry->kind != TAUTLINE_ENTRY_ACTION || n >= TAUTLINE_ACTIONS) continue;
        if (entry->form == TAUTLINE_ACTION_REQUEST) continue;
        bool by_stop = follower->has_heard && entry->on_stop == TAUTLINE_ACTION_ON;
        bool kept = entry->form == TAUTLINE_ACTION_SWITCH &&
                    entry->on_stop != TAUTLINE_ACTION_OFF && (last->actions >> n & 1);
        if (by_stop || kept) control->actions |= UINT32_C(1) << n;
    }
}

/* Writes the controls of a machine that brakes by itself, along its present arc. */
static void brake(tautline_follower *follower, const tautline_machine *machine, uint64_t now,
                  tautline_control *control) {
    const tautline_control *last = &follower->control;
    if (!follower->is_alone) {
        follower->is_alone = true;
        follower->alone_since = now;
        follower->alone_twist[0] = last->forward;
        follower->alone_twist[1] = last->sideways;
        follower->alone_twist[2] = last->yaw_rate;
    }
    if (follower->has_heard) {
        follower->has_silence = true;
        follower->silent_at = now;
    }
    bool is_standing = stands(machine);
    control->throttle = 0;
    control->brake = fmaxf(is_standing ? 1 : follower->settings.brake, last->brake);
    control->parking_brake = is_standing || last->parking_brake;
    control->requests_number = control->requests_action = 0;
    slow(follower, seconds_of(since(now, follower->alone_since)), control);
    if (is_standing) control->forward = control->sideways = control->yaw_rate = 0;
}

bool tautline_controls(tautline_follower *follower, const tautline_machine *machine, uint64_t now,
                       tautline_control *control) {
    float elapsed = seconds_of(since(now, follower->applied_at));
    bool is_followed = follows(follower, now);
    *control = follower->control;
    if (is_followed) {
        follower->is_alone = false;
    } else {
        brake(follower, machine, now, control);
        stop_declared(follower, elapsed, control);
    }
    follower->applied = *control;
    follower->applied_at = now;
    return is_followed;
}

bool tautline_request(const tautline_follower *follower, uint64_t now, uint8_t *action) {
    uint32_t number = follower->control.requests_number;
    *action = follower->control.requests_action;
    return number != 0 && number != follower->answered_number && follows(follower, now);
}

void tautline_answer(tautline_follower *follower, bool is_accepted) {
    follower->answered_number = follower->control.requests_number;
    follower->answer = is_accepted ? TAUTLINE_ANSWER_ACCEPTED : TAUTLINE_ANSWER_REFUSED;
    if (follower->answered_number == 0) follower->answer = TAUTLINE_ANSWER_NONE;
}

void tautline_report(const tautline_follower *follower, tautline_machine *machine, uint64_t now) {
    if (follower->has_silence && since(now, follower->silent_at) < SILENT_TOLD) {
        machine->notices |= TAUTLINE_NOTICE_GUARD_SILENT;
    }
    machine->answers_number = follower->answered_number;
    machine->answer = follower->answer;
    machine->description = follower->entry_count > 0 ? follower->entries[0].revision : 0;
}

void tautline_end(tautline_follower *follower, uint64_t now) {
    if (!follower->has_ended) follower->ends_since = now;
    follower->has_ended = true;
}

bool tautline_may_leave(const tautline_follower *follower, const tautline_machine *machine,
                        uint64_t now) {
    bool is_over = since(now, follower->ends_since) >= END_MAX;
    return follower->has_ended && (stands(machine) || is_over);
}

void tautline_leave(const tautline_follower *follower, tautline_control *control) {
    *control = follower->applied;
    control->throttle = 0;
    control->brake = 1;
    control->forward = control->sideways = control->yaw_rate = 0;
    control->requests_number = control->requests_action = 0;
    stop_declared(follower, INFINITY, control);
}
