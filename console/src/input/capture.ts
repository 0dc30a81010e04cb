import type { Source } from './bindings';
import type { Mapping, PadState } from './mapping';

/** Change of an axis, which spans 2, that counts as a deliberate push. */
const PUSH = 0.6;

/** Finds the key, button or stick that a person wants to assign: the first that moves. */
export class Capture {
  readonly #before: readonly PadState[];

  /** `pads` are the connected devices before the person moves anything. */
  constructor(pads: readonly PadState[]) {
    this.#before = pads.map(({ id, index, mapping, axes, buttons }) => ({
      id, index, mapping, axes: [...axes], buttons: buttons.map(({ value, pressed }) => ({ value, pressed })),
    }));
  }

  /** Returns the button, or the side of an axis, that has moved since the begin; `null` if none. */
  observe(pads: readonly PadState[]): Source | null {
    for (const pad of pads) {
      const before = this.#before.find(({ index, id }) => index === pad.index && id === pad.id);
      if (before === undefined) continue;
      const button = pad.buttons.findIndex(({ value }, number) => value > 0.5 && (before.buttons[number]?.value ?? 1) <= 0.5);
      if (button >= 0) return { kind: 'button', device: pad.id, button };
      const axis = pad.axes.findIndex(
        (value, number) => Math.abs(value - (before.axes[number] ?? value)) > PUSH && Math.abs(value) > PUSH);
      if (axis >= 0) return { kind: 'axis', device: pad.id, axis, side: pad.axes[axis]! > 0 ? 1 : -1 };
    }
    return null;
  }
}

/** Returns whether a device drives by this source already. */
export function drivesBy(mapping: Mapping | null, source: Source): boolean {
  if (mapping === null || source.kind === 'key') return false;
  const { steering, throttle, brake, speed, sideways, reverseButton, stopButton, deadManButton } = mapping;
  if (source.kind === 'button') {
    const pedals = [throttle, brake].flatMap((pedal) => (pedal?.kind === 'button' ? [pedal.button] : []));
    return [...pedals, reverseButton, stopButton, deadManButton].includes(source.button);
  }
  const pedals = [throttle, brake].flatMap((pedal) => (pedal?.kind === 'axis' ? [pedal] : []));
  return [steering, speed, sideways, ...pedals].some((part) => part?.axis === source.axis);
}

/** Describes a source for people. */
export function sourceWords(source: Source | null): string {
  switch (source?.kind) {
    case undefined: return 'none';
    case 'key': return keyWords(source.code);
    case 'button': return `button ${source.button}`;
    case 'axis': return `axis ${source.axis} ${source.side > 0 ? '+' : '−'}`;
  }
}

/** Returns the usual name of a key's place. */
function keyWords(code: string): string {
  const plain: Readonly<Record<string, string>> = { Comma: ',', Period: '.', Slash: '/', Semicolon: ';', Quote: "'", BracketLeft: '[', BracketRight: ']' };
  return plain[code] ?? code.replace(/^(Key|Digit)/, '');
}
