import com.google.protobuf.InvalidProtocolBufferException;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Protocol Buffers in Java: src/codec/runtime.rs tells what goes over the pipes. */
final class Main {
  public static void main(String[] arguments) throws IOException {
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
    OutputStream out = System.out;
    Main harness = new Main();
    try {
      while (true) {
        byte request = in.readByte();
        byte[] payload = new byte[Integer.reverseBytes(in.readInt())];
        in.readFully(payload);
        byte[] answer = harness.answer(request, payload);
        ByteBuffer whole = little(4 + answer.length).putInt(answer.length).put(answer);
        out.write(whole.array());
        out.flush();
      }
    } catch (EOFException end) {
      // The harness is done.
    }
  }

  private final Codec codec = new Codec();
  private Codec.Cloud cloud;
  private byte[] message;
  private boolean[] warm = new boolean[9];

  private byte[] answer(byte request, byte[] payload) throws InvalidProtocolBufferException {
    switch (request) {
      case 'e':
        cloud = Codec.Cloud.fromRecords(payload);
        codec.fill(cloud);
        codec.write();
        message = codec.message();
        warm = new boolean[9];
        // Warm up, so that slow first calls are not counted as slow.
        for (int at = 0; at < 20; at++) {
          read(message);
        }
        return message;
      case 't':
        return time(payload[0], ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).getInt(1));
      default:
        return read(payload);
    }
  }

  /**
   * Seconds of a call, by the metrics of src/measure.rs and then its phases. The compiler at work in
   * the background gets its time before.
   */
  private byte[] time(int metric, int repeats) throws InvalidProtocolBufferException {
    if (metric == 8) {
      call(7);
    }
    if (!warm[metric]) {
      warm[metric] = true;
      for (long started = System.nanoTime(); System.nanoTime() - started < 500_000_000L; ) {
        call(metric);
      }
    }
    long started = System.nanoTime();
    for (int at = 0; at < repeats; at++) {
      call(metric);
    }
    double seconds = (System.nanoTime() - started) * 1e-9 / repeats;
    return little(8).putDouble(seconds).array();
  }

  // Sinks that prevent the compiler from optimizing the calls away.
  private volatile Object sinkCloud;
  private volatile double sinkNumber;
  private volatile long sinkGuid;

  private void call(int metric) throws InvalidProtocolBufferException {
    if (metric >= 1 && metric <= 4 || metric == 7) {
      codec.parse(message);
    }
    switch (metric) {
      case 0 -> {
        codec.fill(cloud);
        codec.write();
      }
      case 1, 8 -> sinkCloud = codec.normal();
      case 2 -> sinkNumber = codec.sum();
      case 3 -> sinkGuid = codec.guid();
      case 4 -> sinkNumber = codec.middleY();
      case 5 -> codec.fill(cloud);
      case 6 -> codec.write();
      default -> {}
    }
  }

  /** Says what came of any bytes, and what was in them. */
  private byte[] read(byte[] bytes) {
    var thread = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    long allocated = thread.getCurrentThreadAllocatedBytes();
    long started = thread.getCurrentThreadCpuTime();
    byte verdict = '.';
    Codec.Cloud to = null;
    double sum = 0;
    float y = 0;
    try {
      codec.parse(bytes);
      to = codec.normal();
      sum = codec.sum();
      y = codec.middleY();
    } catch (InvalidProtocolBufferException refusal) {
      verdict = 'e';
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError crash) {
      verdict = 'p';
    }
    if (thread.getCurrentThreadAllocatedBytes() - allocated > 64 << 20) {
      verdict = 'g';
    }
    if (thread.getCurrentThreadCpuTime() - started > 50_000_000L) {
      verdict = 's';
    }
    if (to == null) {
      return new byte[] {verdict};
    }
    ByteBuffer answer = little(1 + 8 + 4 + 32 + 16 * to.points().length);
    answer.put(verdict).putDouble(sum).putFloat(y);
    to.toRecords(answer);
    return answer.array();
  }

  private static ByteBuffer little(int length) {
    return ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
  }
}
