// The harness's interface to a codec in C or C++; src/codec/foreign.rs is the other side.
#pragma once

#include <cstddef>
#include <cstdint>

namespace harness {

/// The fixed part of the normal form, as in src/normal.rs.
struct Info {
  uint64_t kind, timestamp, guid;
};

/// A point of the normal form.
struct Point {
  float position[3];
  uint8_t intensity;
};

/// Outcome of reading bytes: REFUSED for the codec's own error, THREW for any other exception.
enum Verdict : int32_t { READ = 0, REFUSED = 1, THREW = 2 };

/// Function table of a codec that operates on its own state.
struct Calls {
  void *(*make)();
  void (*end)(void *codec);
  /// Converts the normal form to the codec's own structures.
  void (*fill)(void *codec, const Info *info, const Point *points, size_t count);
  /// Writes them as a message into the codec's own buffer.
  const uint8_t *(*write)(void *codec, size_t *length);
  /// Parses a message into the codec's own structures.
  Verdict (*parse)(void *codec, const uint8_t *bytes, size_t length);
  /// Converts parsed structures, if any, to the normal form; `points` has room for `count`.
  size_t (*count)(const void *codec);
  void (*normal)(const void *codec, Info *info, Point *points);
  double (*sum)(const void *codec);
  uint64_t (*guid)(const void *codec);
  float (*middle_y)(const void *codec);
};

/// Sums in the order of src/normal.rs, so that the results are bit-identical.
template <class Own> double sum(const Own &own) {
  constexpr size_t RUN = 4;
  double lanes[4 * RUN] = {};
  const size_t count = own.count(), whole = count / RUN * RUN;
  const auto add = [&own](double *lane, size_t at) {
    const Point point = own.point(at);
    for (size_t axis = 0; axis < 3; ++axis) lane[axis] += point.position[axis];
    lane[3] += point.intensity;
  };
  for (size_t at = 0; at < whole; at += RUN) {
    for (size_t lane = 0; lane < RUN; ++lane) add(lanes + 4 * lane, at + lane);
  }
  for (size_t at = whole; at < count; ++at) add(lanes, at);
  double all = 0;
  for (double lane : lanes) all += lane;
  const Info info = own.info();
  return double(info.kind) + double(info.timestamp) + double(info.guid) + all;
}

/// Function table of a class with fill, write, parse, info, count and point.
template <class Own> const Calls *calls() {
  static const Calls table = {
      []() -> void * { return new Own(); },
      [](void *codec) { delete static_cast<Own *>(codec); },
      [](void *codec, const Info *info, const Point *points, size_t count) {
        static_cast<Own *>(codec)->fill(*info, points, count);
      },
      [](void *codec, size_t *length) { return static_cast<Own *>(codec)->write(length); },
      [](void *codec, const uint8_t *bytes, size_t length) {
        try {
          return static_cast<Own *>(codec)->parse(bytes, length) ? READ : REFUSED;
        } catch (...) {
          return THREW;
        }
      },
      [](const void *codec) { return static_cast<const Own *>(codec)->count(); },
      [](const void *codec, Info *info, Point *points) {
        const Own &own = *static_cast<const Own *>(codec);
        *info = own.info();
        const size_t count = own.count();
        for (size_t at = 0; at < count; ++at) points[at] = own.point(at);
      },
      [](const void *codec) { return sum(*static_cast<const Own *>(codec)); },
      [](const void *codec) { return static_cast<const Own *>(codec)->info().guid; },
      [](const void *codec) {
        const Own &own = *static_cast<const Own *>(codec);
        const size_t count = own.count();
        return count ? own.point(count / 2).position[1] : 0.0f;
      },
  };
  return &table;
}

} // namespace harness
