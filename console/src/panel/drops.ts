import type { DropView, SnapshotView, VideoView } from '../report';
import { byId, make, setData, setText, slug } from './element';
import { count } from './format';
import { Rows } from './rows';

export type DropGroup = 'operator' | 'vehicle' | 'console';

export interface Drop {
  name: string;
  count: number;
  /** True for redundancy that was not needed. It is no loss, so it is summed separately. */
  surplus: boolean;
}

// Names of the drops that count packets of a block which was already recovered.
const SURPLUS: ReadonlySet<string> = new Set(['packet_surplus']);
const HEADINGS: Readonly<Record<DropGroup, string>> = {
  operator: 'Operator', vehicle: 'Vehicle', console: 'This page',
};

/** Groups the drops by the process that counts them. */
export function groupDrops(
  operator: SnapshotView | null, vehicle: SnapshotView | null, video: VideoView | null,
): Record<DropGroup, Drop[]> {
  return { operator: marked(operator?.drops), vehicle: marked(vehicle?.drops), console: marked(video?.drops) };
}

/** Returns the sum of real drops and the sum of surplus. */
export function totals(groups: Record<DropGroup, Drop[]>): { dropped: number; surplus: number } {
  const all = Object.values(groups).flat();
  const sum = (surplus: boolean): number => all.reduce(
    (total, drop) => (drop.surplus === surplus ? total + drop.count : total), 0);
  return { dropped: sum(false), surplus: sum(true) };
}

/** The drops, with their total in the heading. Those that are zero are shown only on request. */
export class Drops {
  readonly #card = byId<HTMLDetailsElement>('drops');
  readonly #box = byId('drop-rows');
  readonly #total = byId('drops-total');
  readonly #surplus = byId('drops-surplus');
  readonly #zeros = byId<HTMLInputElement>('drops-zeros');
  readonly #rows: Readonly<Record<DropGroup, Rows>>;
  readonly #none: Readonly<Record<DropGroup, HTMLElement>>;

  constructor() {
    const rows = (group: DropGroup): Rows => new Rows(this.#box, HEADINGS[group]);
    this.#rows = { operator: rows('operator'), vehicle: rows('vehicle'), console: rows('console') };
    const none = (group: DropGroup): HTMLElement => {
      const element = make('p', {}, 'none');
      this.#rows[group].box.append(element);
      return element;
    };
    this.#none = { operator: none('operator'), vehicle: none('vehicle'), console: none('console') };
    this.#zeros.addEventListener('change', () => {
      setData(this.#box, 'zeros', this.#zeros.checked ? 'shown' : 'hidden');
      // Otherwise Space would toggle it again instead of braking.
      this.#zeros.blur();
    });
  }

  show(operator: SnapshotView | null, vehicle: SnapshotView | null, video: VideoView | null): void {
    const groups = groupDrops(operator, vehicle, video);
    const { dropped, surplus } = totals(groups);
    setText(this.#total, count(dropped));
    setText(this.#surplus, surplus === 0 ? '' : `+ ${count(surplus)} surplus, not needed`);
    if (!this.#card.open) return;
    for (const group of ['operator', 'vehicle', 'console'] as const) {
      for (const drop of groups[group]) {
        const name = drop.surplus ? `${drop.name} (surplus, not needed)` : drop.name;
        this.#rows[group].set(name, count(drop.count), `drop-${group}-${slug(drop.name)}`, drop.surplus ? 'surplus' : '');
      }
      this.#none[group].hidden = groups[group].some((drop) => drop.count > 0);
    }
  }
}

function marked(drops: DropView[] = []): Drop[] {
  return drops.map((drop) => ({ ...drop, surplus: SURPLUS.has(drop.name) }));
}
