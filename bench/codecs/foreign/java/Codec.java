import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Protocol Buffers by Google's Java library (schemas/lidar.proto), with its own buffer. */
final class Codec {
  /** A point of the normal form, as in src/normal.rs. */
  record Point(float x, float y, float z, byte intensity) {}

  /** The normal form. */
  record Cloud(long kind, long timestamp, long guid, Point[] points) {
    /** Decodes it from the harness's encoding (src/codec/records.rs). */
    static Cloud fromRecords(byte[] bytes) {
      ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
      long kind = in.getLong(), timestamp = in.getLong(), guid = in.getLong();
      Point[] points = new Point[(int) in.getLong()];
      for (int at = 0; at < points.length; at++) {
        points[at] = new Point(in.getFloat(), in.getFloat(), in.getFloat(), in.get());
        in.position(in.position() + 3);
      }
      return new Cloud(kind, timestamp, guid, points);
    }

    void toRecords(ByteBuffer out) {
      out.putLong(kind).putLong(timestamp).putLong(guid).putLong(points.length);
      for (Point point : points) {
        out.putFloat(point.x).putFloat(point.y).putFloat(point.z).putInt(point.intensity & 0xFF);
      }
    }
  }

  private Lidar.Cloud outgoing;
  private byte[] buffer = new byte[0];
  private int length;
  private Lidar.Cloud incoming;

  /** Converts the normal form to new Protocol Buffers messages, which are immutable. */
  void fill(Cloud from) {
    Lidar.Cloud.Builder cloud = Lidar.Cloud.newBuilder();
    cloud.setInfo(
        Lidar.Info.newBuilder()
            .setKind(from.kind())
            .setTimestamp(from.timestamp())
            .setGuid(from.guid()));
    Lidar.Point.Builder builder = Lidar.Point.newBuilder();
    for (Point point : from.points()) {
      builder.setX(point.x()).setY(point.y()).setZ(point.z());
      cloud.addPoints(builder.setIntensity(point.intensity() & 0xFF).build());
    }
    outgoing = cloud.build();
  }

  /** Encodes them as a message. */
  int write() {
    length = outgoing.getSerializedSize();
    if (buffer.length < length) {
      buffer = new byte[length];
    }
    CodedOutputStream out = CodedOutputStream.newInstance(buffer, 0, length);
    try {
      outgoing.writeTo(out);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
    return length;
  }

  byte[] message() {
    return java.util.Arrays.copyOf(buffer, length);
  }

  /** Decodes a message into Protocol Buffers messages. */
  void parse(byte[] message) throws InvalidProtocolBufferException {
    incoming = Lidar.Cloud.parseFrom(message);
  }

  /** Converts them to a new normal form. */
  Cloud normal() {
    Point[] points = new Point[incoming.getPointsCount()];
    for (int at = 0; at < points.length; at++) {
      Lidar.Point point = incoming.getPoints(at);
      points[at] =
          new Point(point.getX(), point.getY(), point.getZ(), (byte) point.getIntensity());
    }
    Lidar.Info info = incoming.getInfo();
    return new Cloud(info.getKind(), info.getTimestamp(), info.getGuid(), points);
  }

  /** Sums in the order of src/normal.rs, so that the results are bit-identical. */
  double sum() {
    final int run = 4;
    double[] lanes = new double[4 * run];
    int count = incoming.getPointsCount();
    int whole = count / run * run;
    for (int at = 0; at < count; at++) {
      Lidar.Point point = incoming.getPoints(at);
      int lane = at < whole ? 4 * (at % run) : 0;
      lanes[lane] += point.getX();
      lanes[lane + 1] += point.getY();
      lanes[lane + 2] += point.getZ();
      lanes[lane + 3] += (byte) point.getIntensity() & 0xFF;
    }
    double all = 0;
    for (double lane : lanes) {
      all += lane;
    }
    Lidar.Info info = incoming.getInfo();
    return unsigned(info.getKind()) + unsigned(info.getTimestamp()) + unsigned(info.getGuid()) + all;
  }

  long guid() {
    return incoming.getInfo().getGuid();
  }

  float middleY() {
    int count = incoming.getPointsCount();
    return count == 0 ? 0 : incoming.getPoints(count / 2).getY();
  }

  /** Converts an unsigned 64-bit number with a single rounding to nearest, as other languages do. */
  private static double unsigned(long bits) {
    return bits >= 0 ? bits : (double) ((bits >>> 1) | (bits & 1)) * 2.0;
  }
}
