import type { Standing } from '../wire';
import { UNKNOWN } from './format';

/** Number of letters of a public key that are shown, enough to recognize it. */
const KEY_LETTERS = 8;

/** Describes who drives and who else is connected, in one line. */
export function whoWords(standing: Standing | null): string {
  if (standing === null) return UNKNOWN;
  const { watching } = standing;
  return watching.length === 0 ? driver(standing) : `${driver(standing)}; ${watching.length} more: ${watching.join(', ')}`;
}

function driver({ role, holder, operator }: Standing): string {
  const name = operator === null ? null : `${operator.name} (${operator.key.slice(0, KEY_LETTERS)})`;
  if (role === 'drives') return name === null ? 'you drive' : `you drive as ${name}`;
  if (holder === null) return 'nobody drives';
  return `${name ?? 'another console'} drives from ${holder.address}`;
}
