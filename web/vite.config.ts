import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

// During development the pages come from Vite and the API from a real server, which refuses foreign hosts and
// cross-origin writes: it is told its own name.
const server = process.env.LEASEHOLD_SERVER ?? 'http://127.0.0.1:4653'
const api = { target: server, changeOrigin: true, headers: { origin: server } }

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the content security policy allows no scripts and workers in data: URLs
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: 'es' },
  server: { proxy: { '/v1': api, '/console': api, '/readyz': api, '/version': api, '/metrics': api } },
})
