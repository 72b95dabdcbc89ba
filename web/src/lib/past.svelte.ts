// The holds of a stretch of time that are over: read once, then completed as leases end.
import { api, problemOf } from './api'
import { pastBar, type Bar } from './lanes'
import type { Live } from './live.svelte'

const pageSize = 1_000
const most = 5_000
const pause = 1_000

export class Past {
  bars = $state.raw(new Map<string, Bar>())
  error = $state('')
  /** there is more than is read: the oldest are left out. */
  cut = $state(false)
  loading = $state(false)
  /** what was asked for has been read once, or cannot be. */
  ready = $state(false)
  private from = Infinity
  private newest = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private stopped = false

  constructor(private readonly live: Live) {}

  /** start follows what ends, until the function that it returns is called. */
  start(): () => void {
    const stop = this.live.onEvents(events => {
      if (events.some(e => e.kind === 'ended' || e.kind === 'changed')) this.soon()
    })
    return () => {
      this.stopped = true
      clearTimeout(this.timer)
      stop()
    }
  }

  /** reach makes sure that all since a moment is there. */
  reach(from: number): void {
    if (from >= this.from) return
    this.from = from
    void this.read(from)
  }

  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      void this.read(Math.max(this.from, this.newest))
    }, pause)
  }

  private async read(from: number): Promise<void> {
    if (!Number.isFinite(from)) return
    this.loading = true
    try {
      const found = new Map(this.bars)
      let after: string | undefined
      let n = 0
      do {
        const page = await api.holds(this.live.namespace, { from: new Date(from).toISOString(), limit: pageSize, after })
        if (this.stopped) return
        for (const hold of page.items) {
          const bar = pastBar(hold)
          found.set(bar.key, bar)
          this.newest = Math.max(this.newest, bar.to)
        }
        n += page.items.length
        after = page.next
      } while (after && n < most)
      this.cut ||= after !== undefined
      this.bars = found
      this.error = ''
    } catch (e) {
      this.error = problemOf(e).message
    } finally {
      this.loading = false
      this.ready = true
    }
  }
}
