import { defineConfig } from 'vitest/config';

// `npm run dev` serves the page and proxies the rest to a running operator, started with
// `--console-name localhost:5173`. Open /enter.html# followed by the token after the # of the
// address that the operator prints.
const operator = process.env['TAUTLINE_OPERATOR'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: './',
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    rolldownOptions: { input: ['index.html', 'enter.html'] },
  },
  server: { proxy: { '/ws': { target: operator, ws: true }, '^/(enter|session)$': operator } },
  test: { include: ['src/**/*.test.ts'] }, // `npm run e2e` runs e2e/.
});
