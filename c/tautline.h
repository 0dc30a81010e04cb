/* The machine's side of Tautline's guard, for microcontrollers: its frames, and what the machine
 * does while the guard is silent. docs/guard.md documents the frames, docs/machine.md this port.
 *
 * Nothing here allocates, blocks, or knows a clock or a socket. All times are arguments, in
 * nanoseconds of one steady clock of the machine, such as a timer since power-on. A turn, at least
 * every 10 ms:
 *
 *     while (a datagram has arrived) tautline_receive(&follower, bytes, length);
 *     now = clock();                        // read after receiving
 *     tautline_turn(&follower, now);
 *     machine = sensors();                  // a tautline_machine
 *     tautline_controls(&follower, &machine, now, &control);
 *     actuators(&control);
 *     if (tautline_request(&follower, now, &action)) tautline_answer(&follower, begin(action));
 *     tautline_report(&follower, &machine, now);
 *     send(frame, tautline_encode_machine(frame, &machine, &counter, now));
 *     ... one entry of the description, and new readings of values, if it has any
 */
#ifndef TAUTLINE_H
#define TAUTLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of a machine's axes, actions and values, at most. */
#define TAUTLINE_AXES 16
#define TAUTLINE_ACTIONS 32
#define TAUTLINE_VALUES 64

/* The frames; written by `cargo xtask frames`. */
#define TAUTLINE_CONTROL_ID 0x54474333u
#define TAUTLINE_CONTROL_BYTES 120
#define TAUTLINE_MACHINE_ID 0x54474D33u
#define TAUTLINE_MACHINE_BYTES 166
#define TAUTLINE_DESCRIPTION_ID 0x54474431u
#define TAUTLINE_DESCRIPTION_BYTES 100
#define TAUTLINE_VALUE_ID 0x54475631u
#define TAUTLINE_VALUE_BYTES 95

enum {
    TAUTLINE_ANSWER_NONE = 0,
    TAUTLINE_ANSWER_ACCEPTED = 1,
    TAUTLINE_ANSWER_REFUSED = 2,
};

enum {
    TAUTLINE_ENTRY_AXIS = 0,
    TAUTLINE_ENTRY_ACTION = 1,
    TAUTLINE_ENTRY_VALUE = 2,
};

enum {
    TAUTLINE_GEAR_DRIVE = 0,
    TAUTLINE_GEAR_REVERSE = 1,
};

enum {
    TAUTLINE_MODE_HELD = 0,
    TAUTLINE_MODE_ARMED = 1,
    TAUTLINE_MODE_DRIVING = 2,
    TAUTLINE_MODE_LIMITED = 3,
    TAUTLINE_MODE_MANOEUVRE = 4,
};

enum {
    TAUTLINE_READING_NUMBER = 0,
    TAUTLINE_READING_TEXT = 1,
};

enum {
    TAUTLINE_FAULT_UNREACHABLE = 1 << 0,
    TAUTLINE_FAULT_REFUSED = 1 << 1,
    TAUTLINE_FAULT_EMERGENCY_BUTTON = 1 << 2,
    TAUTLINE_FAULT_STEERING = 1 << 3,
    TAUTLINE_FAULT_DRIVE = 1 << 4,
    TAUTLINE_FAULT_BRAKE = 1 << 5,
    TAUTLINE_FAULT_GEAR = 1 << 6,
    TAUTLINE_FAULT_SPEED = 1 << 7,
    TAUTLINE_FAULT_OTHER = 1 << 8,
    TAUTLINE_FAULT_DESCRIPTION = 1 << 9,
};

enum {
    TAUTLINE_NOTICE_PARKING_BRAKE = 1 << 0,
    TAUTLINE_NOTICE_LOCAL_STOP = 1 << 1,
    TAUTLINE_NOTICE_LOCAL_CONTROL = 1 << 2,
    TAUTLINE_NOTICE_GUARD_SILENT = 1 << 3,
};

/* Control: guard to machine. */
typedef struct {
    uint8_t mode; /* 0 held, 1 armed, 2 driving, 3 limited, 4 manoeuvre; for display at the machine */
    float steering; /* ratio, -1 right to 1 left */
    float throttle; /* ratio, 0 to 1 */
    float brake; /* ratio, 0 to 1 */
    uint8_t gear; /* 0 drive, 1 reverse */
    uint8_t parking_brake; /* 1 holds */
    float forward; /* m/s, negative backwards: of a differential or omni machine, as the next two */
    float sideways; /* m/s, to the left positive */
    float yaw_rate; /* rad/s, counterclockwise positive */
    float axes[16]; /* set points of the declared axes in their units, by number; NaN: no set point */
    uint32_t actions; /* a bit each, from the least significant: the declared action of this number is on */
    uint32_t requests_number; /* rises with each request, and is repeated until it is answered; 0: none */
    uint8_t requests_action; /* number of the declared action, 0 to 31 */
} tautline_control;

/* Machine: machine to guard. */
typedef struct {
    float speed; /* m/s, along the machine, negative backwards; NaN: not known */
    float sideways_speed; /* m/s, to the left positive; NaN: not known */
    float yaw_rate; /* rad/s, counterclockwise positive; NaN: not known */
    float steering_angle; /* rad, at the road wheels, left positive; NaN: not known */
    uint8_t gear; /* 0 drive, 1 reverse */
    uint32_t notices; /* bits 0 parking brake, 1 local stop, 2 local control, 3 guard silent */
    uint32_t faults; /* bits 0 unreachable, 1 refused, 2 emergency button, 3 steering, 4 drive, 5 brake, 6 gear, 7 speed, 8 other, 9 description */
    float x; /* m, east; NaN: position not known */
    float y; /* m, north */
    float heading; /* rad, counterclockwise from x, not wrapped */
    double latitude; /* degrees, WGS 84; NaN: not known */
    double longitude; /* degrees */
    float height; /* m, above the ellipsoid; NaN: not known */
    float axes[16]; /* measured values of the declared axes in their units, by number; NaN: not known */
    uint32_t actions; /* as in *control*: the declared actions that are on */
    uint32_t answers_number; /* the newest request answered; 0: none */
    uint8_t answer; /* 0 none, 1 accepted, 2 refused */
    uint32_t description; /* revision of the machine's *description*; 0: it declares nothing */
    float acceleration_along; /* m/s², forwards positive; NaN, as in all that follow: not known */
    float acceleration_across; /* m/s², to the left positive */
    float charge; /* %, of a full battery or tank */
} tautline_machine;

/* Description: machine to guard to vehicle. */
typedef struct {
    uint32_t revision; /* CRC-32/P4 over the bytes of all entries from *kind* on, axes, then actions, then values, by index; 1 instead of 0 */
    uint8_t axis_count; /* at most 16 */
    uint8_t action_count; /* at most 32 */
    uint8_t value_count; /* at most 64 */
    uint8_t kind; /* 0 axis, 1 action, 2 value */
    uint8_t index; /* below the count of its kind */
    uint8_t form; /* of an axis 0 position, 1 speed; of an action 0 momentary, 1 switch, 2 request; of a value 0 number, 1 text */
    uint8_t on_stop; /* of an axis 0 hold, 1 zero, 2 value, 3 release; of an action 0 off, 1 keep, 2 on; of a value 0 */
    uint8_t flags; /* of an action bit 0: allowed while held; else 0 */
    char name[24]; /* 1 to 24 bytes of UTF-8, padded with zeros */
    char unit[12]; /* 0 to 12 bytes of UTF-8, padded with zeros */
    float low; /* range; of a value NaN: none; of an action 0 */
    float high;
    float rate; /* of an axis: largest change of the set point a second, above 0; else 0 */
    float stop; /* of an axis: set point of *on stop* 2; else 0 */
    float warn_low; /* of a value, as the next three; NaN: no such limit; else NaN */
    float warn_high;
    float alarm_low;
    float alarm_high;
} tautline_description;

/* Value: machine to guard to vehicle. */
typedef struct {
    uint32_t revision; /* of the description that names the value */
    uint8_t index; /* below 64 */
    uint8_t form; /* 0 number, 1 text */
    float number; /* in the value's unit; NaN: not known; of a text 0 */
    uint8_t length; /* bytes of the text, at most 64; of a number 0 */
    char text[64]; /* UTF-8, padded with zeros; of a number all zeros */
} tautline_value;

/* End of the frames. */

/* Forms of described axes and actions, and what a stop does to them. */
enum { TAUTLINE_AXIS_POSITION, TAUTLINE_AXIS_SPEED };
enum { TAUTLINE_AXIS_HOLD, TAUTLINE_AXIS_ZERO, TAUTLINE_AXIS_VALUE, TAUTLINE_AXIS_RELEASE };
enum { TAUTLINE_ACTION_MOMENTARY, TAUTLINE_ACTION_SWITCH, TAUTLINE_ACTION_REQUEST };
enum { TAUTLINE_ACTION_OFF, TAUTLINE_ACTION_KEEP, TAUTLINE_ACTION_ON };

/* Result of a received datagram; all but the first refuse it. */
typedef enum {
    TAUTLINE_ACCEPTED,
    TAUTLINE_WRONG_LENGTH,
    TAUTLINE_WRONG_DATA_ID,
    TAUTLINE_WRONG_CRC,
    TAUTLINE_REPEATED,
    TAUTLINE_WRONG_SEQUENCE, /* more than 9 frames are missing; the next is checked against this */
    TAUTLINE_WRONG_VALUE,
} tautline_result;

/* Returns a machine of which nothing is known: all numbers NaN, no fault, no notice. */
tautline_machine tautline_unknown_machine(void);

/* Fills in the revision, counts and indices of a description: axes first, then actions, then
 * values. Returns the revision, which each tautline_machine and tautline_value carries; 0 for a
 * count of 0. The other fields, also unused ones, are the caller's: zeros, and NaN for missing
 * limits; names and units are padded with zeros. */
uint32_t tautline_describe(tautline_description *entries, size_t count);

/* Encodes a frame, with the next number of this kind of frame in `counter`, which starts as 0.
 * Returns its length. */
size_t tautline_encode_machine(uint8_t bytes[TAUTLINE_MACHINE_BYTES],
                               const tautline_machine *machine, uint16_t *counter, uint64_t now);
size_t tautline_encode_description(uint8_t bytes[TAUTLINE_DESCRIPTION_BYTES],
                                   const tautline_description *entry, uint16_t *counter,
                                   uint64_t now);
size_t tautline_encode_value(uint8_t bytes[TAUTLINE_VALUE_BYTES], const tautline_value *value,
                             uint16_t *counter, uint64_t now);

/* Receiving end of control frames. Zeroed before the first. */
typedef struct {
    uint16_t last;
    bool has_last;
    uint32_t refused_count, missing_count;
} tautline_receiver;

/* Decodes and checks a datagram of any content. Values out of range are limited, and set points of
 * axes that are not finite become NaN. Writes the frame and its time of sending, by the guard's
 * clock, only if it is accepted. */
tautline_result tautline_decode(tautline_receiver *receiver, const uint8_t *bytes, size_t length,
                                tautline_control *control, uint64_t *source);

/* What the machine does by itself while the guard is silent. */
typedef struct {
    uint64_t control_timeout; /* ns of silence until then; 30 ms */
    float brake;              /* of an Ackermann machine, 0 to 1; 0.5 */
    float deceleration;       /* of any other, m/s² along its way; 1 */
    float yaw_deceleration;   /* of any other's turn, rad/s²; 2 */
} tautline_settings;

/* Returns the settings above. */
tautline_settings tautline_default_settings(void);

/* State of the machine's side: follows the guard, or brakes without it. Its fields are private. */
typedef struct {
    tautline_settings settings;
    const tautline_description *entries;
    size_t entry_count;
    tautline_receiver receiver;
    tautline_control control, newest, applied;
    bool has_newest, has_heard, has_turned, has_late, has_silence, is_alone, has_ended;
    uint64_t newest_source, heard_at, turned_at, left_out, left_out_newest, applied_at;
    uint64_t late_source, late_at, early_since, silent_at, alone_since, ends_since;
    int64_t late_least, early_least;
    uint8_t early_count, answer;
    uint32_t answered_number;
    float alone_twist[3];
} tautline_follower;

/* Starts a machine's side, which holds until the first control frame. `entries`, which may be NULL
 * with a count of 0, is the description after tautline_describe; it must outlive the follower. */
void tautline_start(tautline_follower *follower, tautline_settings settings,
                    const tautline_description *entries, size_t count);

/* Takes a received datagram of any content; the newest valid control of a turn counts. */
tautline_result tautline_receive(tautline_follower *follower, const uint8_t *bytes, size_t length);

/* Ends the receiving of this turn. Controls that waited during a longer pause of the machine's own
 * program are discarded as old. */
void tautline_turn(tautline_follower *follower, uint64_t now);

/* Writes the controls for the actuators. Returns true if they are the guard's; false if the guard
 * has been silent for too long, was never heard, or is ignored at the end. Then the machine slows
 * on its arc, holds at standstill with both brakes, and does with axes and actions as declared for
 * a stop. A motion that is not known never counts as standstill. */
bool tautline_controls(tautline_follower *follower, const tautline_machine *machine, uint64_t now,
                       tautline_control *control);

/* Returns whether the guard, which is followed, asks for an action that was not answered yet, and
 * writes its number. tautline_answer answers it; each request is asked for until then. */
bool tautline_request(const tautline_follower *follower, uint64_t now, uint8_t *action);
void tautline_answer(tautline_follower *follower, bool is_accepted);

/* Completes what is reported: the notice of a silent guard, for 0.1 s after the machine braked by
 * itself, the answer to the newest request, and the description's revision. */
void tautline_report(const tautline_follower *follower, tautline_machine *machine, uint64_t now);

/* Ignores the guard from now on, in order to end. */
void tautline_end(tautline_follower *follower, uint64_t now);

/* Returns whether the machine may be left after tautline_end: it stands, or 30 s have passed. */
bool tautline_may_leave(const tautline_follower *follower, const tautline_machine *machine,
                        uint64_t now);

/* Writes the last controls before the program ends: full brake, no throttle, a twist of 0, axes and
 * actions as after a stop. */
void tautline_leave(const tautline_follower *follower, tautline_control *control);

#endif
