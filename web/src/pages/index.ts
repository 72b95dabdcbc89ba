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
  { path: '/timeline', name: 'Timeline', key: 't', load: () => import('./Timeline.svelte') },
  { path: '/alarms', name: 'Needs a look', key: 'n', load: () => import('./Alarms.svelte') },
  { path: '/pools', name: 'Pools', key: 'p', load: () => import('./Pools.svelte') },
  { path: '/audit', name: 'Audit', key: 'a', load: () => import('./Audit.svelte') },
  { path: '/cluster', name: 'Cluster', key: 'c', load: () => import('./Cluster.svelte') },
  { path: '/connect', name: 'Connect', key: 'o', load: () => import('./Connect.svelte') },
]

export const signIn: Page = { path: '/signin', name: 'Sign in', key: '', load: () => import('./SignIn.svelte') }
