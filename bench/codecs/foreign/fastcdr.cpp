// Fast-CDR, with classes in the style of Fast DDS's generator (schemas/lidar.idl).
#include "harness.hpp"

#include <array>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>

namespace {

using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

struct Info {
  uint64_t kind, timestamp, guid;
  void serialize(Cdr &cdr) const { cdr << kind << timestamp << guid; }
  void deserialize(Cdr &cdr) { cdr >> kind >> timestamp >> guid; }
};

struct Point {
  std::array<float, 3> position;
  uint8_t intensity;
  void serialize(Cdr &cdr) const { cdr << position << intensity; }
  void deserialize(Cdr &cdr) { cdr >> position >> intensity; }
};

struct Cloud {
  Info info = {};
  std::vector<Point> points;
  void serialize(Cdr &cdr) const { cdr << info << points; }
  void deserialize(Cdr &cdr) { cdr >> info >> points; }
};

class FastCdr {
public:
  void fill(const harness::Info &info, const harness::Point *points, size_t count) {
    outgoing_.info = {info.kind, info.timestamp, info.guid};
    outgoing_.points.resize(count);
    for (size_t at = 0; at < count; ++at) {
      const auto &position = points[at].position;
      outgoing_.points[at] = {{position[0], position[1], position[2]}, points[at].intensity};
    }
  }

  const uint8_t *write(size_t *length) {
    buffer_.resize(HEAD + sizeof(Point) * outgoing_.points.size());
    FastBuffer fast(reinterpret_cast<char *>(buffer_.data()), buffer_.size());
    Cdr cdr(fast, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    cdr.serialize_encapsulation();
    outgoing_.serialize(cdr);
    *length = cdr.getSerializedDataLength();
    return buffer_.data();
  }

  bool parse(const uint8_t *bytes, size_t length) {
    incoming_.points.clear();
    try {
      // Its buffer requires a non-const pointer, but does not write through it.
      FastBuffer fast(reinterpret_cast<char *>(const_cast<uint8_t *>(bytes)), length);
      Cdr cdr(fast, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
      cdr.read_encapsulation();
      incoming_.deserialize(cdr);
      return true;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
  }

  harness::Info info() const {
    return {incoming_.info.kind, incoming_.info.timestamp, incoming_.info.guid};
  }
  size_t count() const { return incoming_.points.size(); }
  harness::Point point(size_t at) const {
    const Point &point = incoming_.points[at];
    return {{point.position[0], point.position[1], point.position[2]}, point.intensity};
  }

private:
  // Encapsulation, three numbers and a count, with alignment.
  static constexpr size_t HEAD = 64;
  Cloud outgoing_, incoming_;
  std::vector<uint8_t> buffer_;
};

} // namespace

extern "C" const harness::Calls *fastcdr_calls() { return harness::calls<FastCdr>(); }
