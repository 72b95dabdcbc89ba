// The namespaces that one may look at.
import { api } from './api'
import { router } from './router.svelte'
import { settings } from './settings.svelte'

const most = 5_000 // a cluster has fewer
const fresh = 5_000 // ms

class Namespaces {
  /** those that exist, and those that were visited, in order. */
  names = $state.raw<string[]>(merge([]))
  private loadedAt = -Infinity

  /** load asks the server, unless it was asked a moment ago. */
  async load(): Promise<void> {
    if (performance.now() - this.loadedAt < fresh) return
    this.loadedAt = performance.now()
    const found: string[] = []
    try {
      for (let after: string | undefined; found.length < most; ) {
        const page = await api.namespaces(after)
        found.push(...page.items.map(n => n.namespace))
        after = page.next
        if (!after) break
      }
    } catch {
      this.loadedAt = -Infinity // what was visited is offered all the same
    }
    this.names = merge(found)
  }

  /** enter shows the same page of another namespace. */
  enter(name: string): void {
    if (name !== router.namespace) router.go(router.href(router.path, { ns: name === 'default' ? undefined : name }))
  }
}

function merge(found: string[]): string[] {
  return [...new Set(['default', ...found, ...settings.namespaces])].sort()
}

export const namespaces = new Namespaces()
