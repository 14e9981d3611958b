import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where `vite` finds the admin API while one works on the console; the built console is served by it. */
const adminApi = process.env['WEIR_ADMIN_URL'] ?? 'http://127.0.0.1:4001';

export const config = defineConfig({
  plugins: [react(), tailwind()],
  resolve: { conditions: ['weir-source', 'module', 'browser', 'development|production'] },
  server: { proxy: { '/api': adminApi } },
  build: {
    target: 'es2022',
    // The server's policy allows no data: scripts or styles; fonts stay files, so that they are cached.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
});
export { config as default };
