import { defineConfig } from 'vitest/config';

// `npm run dev` serves the page and hands the rest on to a running operator, which knows it by
// `--console-name localhost:5173`: open /enter.html# and what stands behind the # of the address that it prints.
const operator = process.env['TAUTLINE_OPERATOR'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: './',
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    rolldownOptions: { input: ['index.html', 'enter.html'] },
  },
  server: { proxy: { '/ws': { target: operator, ws: true }, '^/(enter|session)$': operator } },
  test: { include: ['src/**/*.test.ts'] }, // e2e/ runs by `npm run e2e`.
});
