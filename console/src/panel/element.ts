/** Returns the element of this id. Throws if the page lacks it, which is a bug. */
export function byId<T extends Element = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`no element #${id}`);
  return element as unknown as T;
}

/** Writes the text only if it differs: every write to the document costs layout. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets a `data-` attribute only if it differs. */
export function setData(element: HTMLElement, name: string, value: string): void {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Takes the focus from every button and heading that is clicked: with the focus, Space would press
 * it again instead of the brake.
 */
export function unfocusClicked(): void {
  document.addEventListener('click', (event) => {
    // A click by the keyboard has no detail: that person moves the focus by keys.
    if (event.detail > 0) (event.target as Element | null)?.closest<HTMLElement>('button, summary')?.blur();
  });
}

/** Converts a name to a part of an id. */
export function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
