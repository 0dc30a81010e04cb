// Descriptions and values of a machine, as tests make them up, by the numbers of description.fbs
// and values.fbs.
import { Builder } from 'flatbuffers';

/**
 * Returns a description: axes `[name, unit, form, low, high, rate]`, actions `[name, form, onStop,
 * allowedHeld]`, values `[name, unit, form, warnLow, warnHigh, alarmLow, alarmHigh]`. Forms and
 * stops are numbers of the schema.
 */
export function descriptionBytes({ revision, axes = [], actions = [], values = [] }) {
  const builder = new Builder(1024);
  const table = (count, fields) => {
    builder.startObject(count);
    fields();
    return builder.endObject();
  };
  const axisTables = axes.map(([name, unit, form, low, high, rate]) => {
    const [nameAt, unitAt] = [builder.createString(name), builder.createString(unit)];
    return table(8, () => {
      builder.addFieldOffset(0, nameAt, 0);
      builder.addFieldOffset(1, unitAt, 0);
      builder.addFieldInt8(2, form, 0);
      for (const [at, value] of [[3, low], [4, high], [5, rate]]) builder.addFieldFloat32(at, value, 0);
    });
  });
  const actionTables = actions.map(([name, form, onStop, allowedHeld]) => {
    const nameAt = builder.createString(name);
    return table(4, () => {
      builder.addFieldOffset(0, nameAt, 0);
      builder.addFieldInt8(1, form, 0);
      builder.addFieldInt8(2, onStop, 0);
      builder.addFieldInt8(3, allowedHeld ? 1 : 0, 0);
    });
  });
  const valueTables = values.map(([name, unit, form, ...limits]) => {
    const [nameAt, unitAt] = [builder.createString(name), builder.createString(unit)];
    return table(9, () => {
      builder.addFieldOffset(0, nameAt, 0);
      builder.addFieldOffset(1, unitAt, 0);
      builder.addFieldInt8(2, form, 0);
      limits.forEach((limit, index) => { if (limit !== null) builder.addFieldFloat32(5 + index, limit, NaN); });
    });
  });
  const [axesAt, actionsAt, valuesAt] = [axisTables, actionTables, valueTables].map((tables) => vector(builder, tables));
  builder.startObject(4);
  builder.addFieldInt32(0, revision, 0);
  builder.addFieldOffset(1, axesAt, 0);
  builder.addFieldOffset(2, actionsAt, 0);
  builder.addFieldOffset(3, valuesAt, 0);
  builder.finish(builder.endObject(), 'TLD1');
  return builder.asUint8Array();
}

/** Returns readings by their numbers: numbers or texts. */
export function valuesBytes(revision, readings) {
  const builder = new Builder(512);
  const tables = Object.entries(readings).map(([index, reading]) => {
    const text = typeof reading === 'string' ? builder.createString(reading) : 0;
    builder.startObject(3);
    builder.addFieldInt8(0, Number(index), 0);
    if (typeof reading === 'number') builder.addFieldFloat32(1, reading, NaN);
    builder.addFieldOffset(2, text, 0);
    return builder.endObject();
  });
  const readingsAt = vector(builder, tables);
  builder.startObject(3);
  builder.addFieldInt32(0, revision, 0);
  builder.addFieldOffset(2, readingsAt, 0);
  builder.finish(builder.endObject(), 'TLV1');
  return builder.asUint8Array();
}

function vector(builder, tables) {
  builder.startVector(4, tables.length, 4);
  for (const offset of tables.toReversed()) builder.addOffset(offset);
  return builder.endVector();
}
