/** Exchanges the single-use token after the # of the address for a cookie. */

async function enter(token: string): Promise<void> {
  // The request below spends the token, whatever the answer is. Keep it out of the history and of
  // bookmarks.
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

// A new address in this tab differs only after the #, so the browser does not reload by itself.
window.addEventListener('hashchange', tokenOfAddress);
tokenOfAddress();
