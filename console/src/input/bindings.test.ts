import { describe, expect, it } from 'vitest';
import { Bindings, type Source, parseSource } from './bindings';

function kept() {
  const map = new Map<string, string>();
  return { getItem: (key: string) => map.get(key) ?? null, setItem: (key: string, value: string) => { map.set(key, value); } };
}
const pad = (axes: number[], ...buttons: number[]) => ({ id: 'pad', index: 0, mapping: '', axes, buttons: buttons.map((value) => ({ value, pressed: value > 0.5 })) });
const up = () => false;

describe('an assignment', () => {
  it('is a key, a button, or one side of an axis', () => {
    const bindings = new Bindings(kept());
    bindings.assign('more boom', { kind: 'axis', device: 'pad', axis: 1, side: -1 });
    bindings.assign('less boom', { kind: 'button', device: 'pad', button: 2 });
    bindings.assign('action dock', { kind: 'key', code: 'KeyK' });
    const pads = [pad([0, -1], 0, 0, 0.4)];
    expect([bindings.pressed('more boom', up, pads), bindings.pressed('less boom', up, pads)]).toEqual([1, 0.4]);
    expect(bindings.pressed('more boom', up, [pad([0, 1])])).toBe(0);
    expect(bindings.pressed('more boom', up, [pad([0, -0.1])])).toBe(0);
    expect(bindings.pressed('action dock', (code) => code === 'KeyK', [])).toBe(1);
    expect(bindings.slotsOf('KeyK', ['action dock', 'action stand up'])).toEqual(['action dock']);
  });

  it('is 0 without its device, without a number, and without a source', () => {
    const bindings = new Bindings(kept());
    expect(bindings.pressed('action dock', () => true, [])).toBe(0);
    bindings.assign('action dock', { kind: 'button', device: 'pad', button: 1 });
    for (const pads of [[], [pad([], 1)], [pad([], 1, NaN)]]) expect(bindings.pressed('action dock', up, pads)).toBe(0);
  });

  it('outlasts the page, also if it is none, and is a usual key before', () => {
    const store = kept();
    const bindings = new Bindings(store);
    expect([bindings.source('action horn'), bindings.source('action dock')]).toEqual([{ kind: 'key', code: 'KeyH' }, null]);
    bindings.assign('action horn', null);
    bindings.assign('action dock', { kind: 'key', code: 'KeyK' });
    const later = new Bindings(store);
    expect([later.source('action horn'), later.source('action dock')]).toEqual([null, { kind: 'key', code: 'KeyK' }]);
  });

  it('may also be a button on the picture', () => {
    const store = kept();
    new Bindings(store).setOnPicture('action dock', true);
    expect([new Bindings(store).isOnPicture('action dock'), new Bindings(store).isOnPicture('more dock')]).toEqual([true, false]);
  });

  it('is none if the stored text is invalid', () => {
    for (const text of ['', '{', '5', 'null', '{"kind":"key"}', '{"kind":"key","code":""}', '{"kind":"button","device":"pad","button":-1}',
      '{"kind":"axis","device":"pad","axis":0,"side":2}', '{"kind":"axis","axis":0,"side":1}']) expect(parseSource(text)).toBeNull();
    const source: Source = { kind: 'axis', device: 'pad', axis: 3, side: -1 };
    expect(parseSource(JSON.stringify(source))).toEqual(source);
  });
});
