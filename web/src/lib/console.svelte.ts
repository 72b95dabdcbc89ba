// What all pages share: the live state of the namespace that is looked at.
import { untrack } from 'svelte'
import { Live } from './live.svelte'
import { router } from './router.svelte'
import { session } from './session.svelte'
import { settings } from './settings.svelte'

class Console {
  live = $state.raw<Live | undefined>()

  /** start keeps the live state on the namespace of the address. */
  start(): void {
    $effect.root(() => {
      $effect(() => {
        const namespace = router.namespace
        if (!session.loaded || session.needed) return untrack(() => this.end())
        untrack(() => {
          settings.visited(namespace)
          if (this.live?.namespace === namespace) return
          this.end()
          this.live = new Live(namespace)
        })
      })
    })
  }

  private end(): void {
    this.live?.stop()
    this.live = undefined
  }
}

export const shared = new Console()
