// The pages: a line each. The first is loaded at once, the others when they are first shown.
import type { Component } from 'svelte'
import Leases from './Leases.svelte'

export interface Page {
  path: string
  name: string
  /** the key after g that leads to it */
  key: string
  load: () => Promise<{ default: Component }> | { default: Component }
}

export const pages: Page[] = [
  { path: '/', name: 'Leases', key: 'l', load: () => ({ default: Leases }) },
]

export const signIn: Page = { path: '/signin', name: 'Sign in', key: '', load: () => import('./SignIn.svelte') }
