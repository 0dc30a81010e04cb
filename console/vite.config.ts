import { defineConfig } from 'vitest/config';

// `npm run dev` serves the page and hands the WebSocket on to a running operator.
const operator = process.env['TAUTLINE_OPERATOR'] ?? 'ws://127.0.0.1:8080';

export default defineConfig({
  base: './',
  build: { target: 'es2023', modulePreload: { polyfill: false } },
  server: { proxy: { '/ws': { target: operator, ws: true } } },
  test: { include: ['src/**/*.test.ts'] }, // e2e/ runs by `npm run e2e`.
});
