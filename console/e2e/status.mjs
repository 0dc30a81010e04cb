// A status frame of the guard, as tests make one up: docs/guard.md has its bytes.

const LEAST = 383;
const NUMBERS = [NaN, NaN, NaN, 300];

/**
 * Returns a valid frame with these fields. Without them the guard is Held, and reports a speed of 0
 * and no age of the control loop.
 */
export function statusFrame(said = {}) {
  const numbers = said.numbers ?? NUMBERS;
  const bytes = new Uint8Array(LEAST + 4 * numbers.length);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, bytes.length);
  view.setUint32(4, 0x54475333);
  view.setUint32(20, said.tick ?? 1);
  view.setUint8(24, said.mode ?? 0);
  view.setUint8(25, said.cause ?? 0);
  view.setFloat32(26, said.value ?? 0);
  view.setFloat32(30, said.limit ?? 0);
  view.setUint32(34, said.stop || 1);
  view.setUint8(38, said.latched ? 1 : 0);
  view.setUint32(39, said.emergencyStop ?? 0);
  view.setBigUint64(43, said.report?.console ?? 0n);
  view.setUint32(51, said.report?.number ?? 0);
  view.setUint8(55, said.report?.outcome ?? 0);
  view.setUint32(56, said.blockers ?? 0);
  view.setBigUint64(60, said.holder ?? 0n);
  view.setUint16(72, said.loopAgeMs ?? 65_535);
  view.setUint16(74, 65_535);
  view.setFloat32(76, said.speedBound ?? 0);
  view.setFloat32(80, said.sidewaysBound ?? 0);
  view.setFloat32(84, said.yawRateBound ?? 0);
  view.setUint8(88, said.motion ?? 0);
  view.setUint8(89, said.countdown?.cause ?? 0);
  view.setUint16(90, said.countdown?.leftMs ?? 65_535);
  view.setFloat32(112, said.throttle ?? 0);
  view.setFloat32(116, said.brake ?? 0);
  (said.twist ?? [0, 0, 0]).forEach((number, at) => view.setFloat32(122 + 4 * at, number));
  view.setUint16(202, said.machineAge ?? 20);
  view.setFloat32(212, said.speed ?? 0);
  view.setFloat32(216, said.sideways ?? 0);
  view.setFloat32(220, said.yawRate ?? 0);
  view.setFloat32(224, said.steeringAngle ?? 0);
  view.setUint8(228, said.gear ?? 0);
  view.setUint32(229, said.notices ?? 0);
  view.setUint32(233, said.faults ?? 0);
  view.setFloat32(237, NaN);
  view.setFloat64(249, NaN);
  for (let axis = 0; axis < 16; axis += 1) {
    view.setFloat32(134 + 4 * axis, said.setPoints?.[axis] ?? NaN);
    view.setFloat32(269 + 4 * axis, said.axes?.[axis] ?? NaN);
  }
  view.setUint32(333, said.actions ?? said.signals ?? 0);
  view.setUint32(342, said.description ?? 0);
  view.setUint8(346, said.blackBox ?? 0);
  view.setUint16(347, 200);
  view.setUint16(349, 250);
  (said.braking ?? [0, 0, 0]).forEach((number, at) => view.setFloat32(351 + 4 * at, number));
  view.setFloat32(363, said.yawDeceleration ?? 0);
  view.setFloat32(371, said.reverseMax ?? said.speedBound ?? 0);
  numbers.forEach((number, at) => view.setFloat32(LEAST + 4 * at, number));
  return seal(bytes);
}

/** Sets the CRC of a frame that was changed: CRC-32/P4, bit by bit. Returns the same frame. */
export function seal(frame) {
  let crc = 0xffffffff;
  frame.forEach((byte, at) => {
    if (at >= 8 && at < 12) return;
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xc8df352f : 0);
  });
  new DataView(frame.buffer, frame.byteOffset).setUint32(8, ~crc >>> 0);
  return frame;
}
