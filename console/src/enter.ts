/** The way in: takes the token behind the address's #, once, for a cookie. */

async function enter(token: string): Promise<void> {
  // Whatever comes of it, it is spent: neither history nor a bookmark keeps it.
  history.replaceState(null, '', location.pathname);
  const answer = await fetch('enter', { method: 'POST', body: token }).catch(() => null);
  if (answer?.ok === true) {
    location.replace('./');
    return;
  }
  const words = document.getElementById('words')!;
  words.textContent = answer === null ? 'The operator process does not answer.' : await answer.text();
}

function tokenOfAddress(): void {
  const token = location.hash.slice(1);
  if (token !== '') void enter(token);
}

// Another address in this tab changes no more than what stands behind the #.
window.addEventListener('hashchange', tokenOfAddress);
tokenOfAddress();
