// Delays from a guard's steps. Times of a step are on the guard's clock unless marked otherwise.

/** Quantiles in a recording, as shares of the values. */
export const SHARES = [0, 0.5, 0.9, 0.99, 0.999, 1];

/** Meaning of each quantity, all in ms. */
export const QUANTITIES = {
  uplink: 'from the tick that a picture is stamped with to the command that first cites it',
  downlink: 'from that command to the vehicle\'s proposal of it, with the error of the estimated clock',
  page_pause: 'the longest from one command to the next, of each second',
  vehicle_late: 'from one proposal to the next, beyond 10 ms',
  machine_late: 'from one state of the machine to the next, beyond 10 ms',
  guard_late: 'from one step to the next, beyond 10 ms',
};

const PERIOD_MS = 10;
const COMMAND_MS = 20;
// Shortest part of a second whose longest pause counts.
const WHOLE_MS = 700;
const RELEASED = ['Armed', 'Driving', 'Limited'];

/**
 * A row per command: ms since the previous command, delay to the vehicle, and age of the cited
 * picture's stamp.
 */
export const COMMANDS = 'interval_ms,way_ms,picture_ms';

/**
 * Returns every value of each quantity in ms (`found`), and the commands of each stint in the form
 * of COMMANDS (`stints`). It uses the steps in which a person may drive.
 */
export function measured(steps) {
  const stints = [];
  const found = Object.fromEntries(Object.keys(QUANTITIES).map((name) => [name, []]));
  // An hour has more steps than a call takes arguments.
  const offset = steps.filter((step) => step.frames.proposal)
    .reduce((least, step) => Math.min(least, now(step) - source(step)), Infinity);
  const pauses = new Map();
  let last = nothing();
  for (const step of steps) {
    const follows = step.tick === last.tick + 1;
    if (!follows || !RELEASED.includes(step.mode)) last = nothing();
    const at = now(step);
    if (last.at !== null) found.guard_late.push(Math.max(0, at - last.at - PERIOD_MS));
    [last.tick, last.at] = [step.tick, at];
    last.issued.set(step.tick, at);
    if (!RELEASED.includes(step.mode)) continue;
    heard(last.machine, step.frames.machine === null ? null : step.machine.measured_ns / 1e6, found.machine_late);
    heard(last.vehicle, step.frames.proposal === null ? null : source(step), found.vehicle_late);
    if (step.demand?.command) command(step, last, offset, found, pauses, stints);
  }
  const whole = [...pauses.values()].filter(({ from, to }) => to - from > WHOLE_MS);
  found.page_pause.push(...whole.map(({ longest }) => longest));
  return { found, stints };
}

/**
 * Returns the value at rank `share` (0 to 1) between the least and the greatest, rounded to the
 * nearest value; NaN for no values.
 */
export function quantile(values, share) {
  const ascending = values.toSorted((one, other) => one - other);
  return ascending[Math.round((ascending.length - 1) * share)] ?? Number.NaN;
}

/** Returns the state before any recorded step, and after a gap between steps. */
function nothing() {
  return {
    tick: null, at: null, issued: new Map(),
    machine: { at: null, missed: 0 }, vehicle: { at: null, missed: 0 },
    sequence: null, sent: null, cited: null, isCiting: false,
  };
}

/**
 * Handles the time in ms at which a sender's newest frame was made, on its clock; null if none
 * arrived. It adds to `late` how much longer than 10 ms the time since the frame before was, or 0.
 */
function heard(sender, at, late) {
  if (at === null) {
    sender.missed += 1;
    return;
  }
  if (sender.at !== null) {
    const gap = at - sender.at;
    // The guard sees two frames between two steps as one: without a missed frame nothing was late.
    const isOvertaken = gap > 1.5 * PERIOD_MS && (sender.missed === 0 || Math.abs(gap - 2 * PERIOD_MS) < 1);
    late.push(isOvertaken ? 0 : Math.max(0, gap - PERIOD_MS));
  }
  [sender.at, sender.missed] = [at, 0];
}

/**
 * Handles the newest command of a step, once for each: adds its delays to `found`, `pauses` and
 * `stints`.
 */
function command(step, last, offset, found, pauses, stints) {
  const { sequence, cited, age_ms: age } = step.demand.command;
  if (sequence === last.sequence || age === null) return;
  const sent = source(step) + offset - age;
  found.downlink.push(age);
  if (last.sequence !== null && sequence > last.sequence) {
    // Commands in between were sent on time or are lost, in which case their pauses are unknown.
    const pause = sent - last.sent - (sequence - last.sequence - 1) * COMMAND_MS;
    const second = Math.floor(sent / 1_000);
    const known = pauses.get(second) ?? { longest: 0, from: sent };
    pauses.set(second, { ...known, longest: Math.max(known.longest, pause), to: sent });
  }
  if (cited !== null && cited !== last.cited && last.issued.has(cited)) {
    found.uplink.push(sent - last.issued.get(cited));
    last.cited = cited;
  }
  if (cited !== null && last.issued.has(cited)) {
    if (last.sent === null || !last.isCiting) stints.push([]);
    const ages = [last.isCiting ? sent - last.sent : 0, age, sent - last.issued.get(cited)];
    stints.at(-1).push(ages.map((ms) => Math.max(0, Math.round(ms))));
    last.isCiting = true;
  }
  [last.sequence, last.sent] = [sequence, sent];
}

/** Returns the time of a step in ms, on the guard's clock. */
function now(step) {
  return step.now_ns / 1e6;
}

/**
 * Returns the time in ms at which the newest proposal was made, on the vehicle's clock: its bytes
 * 12 to 19.
 */
function source(step) {
  return Number(BigInt(`0x${step.frames.proposal.slice(24, 40)}`)) / 1e6;
}
