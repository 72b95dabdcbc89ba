// The reservations of one resource in a span of time, kept up to date.
import { api, problemOf } from './api'
import type { Live } from './live.svelte'
import { readReservations } from './reservations'
import type { Reservation } from './types'

const quietTime = 500 // ms, between an event and the next look

export class CalendarLive {
  list = $state.raw<Reservation[] | undefined>()
  series = $state.raw<Map<string, Reservation>>(new Map())
  error = $state('')
  private span = { from: 0, until: 0 }
  private reads = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private stops: (() => void)[] = []

  constructor(
    private readonly live: Live,
    readonly path: string,
  ) {
    // Claims are acquires, so every event of the resource may change the state of one.
    this.stops.push(live.onEvents(events => {
      if (events.some(e => e.resource === path)) this.soon()
    }))
  }

  stop(): void {
    this.reads++
    clearTimeout(this.timer)
    for (const stop of this.stops) stop()
  }

  /** look says which time is shown, and reads it. */
  look(from: number, until: number): void {
    this.span = { from, until }
    void this.read()
  }

  /** again reads once more now. */
  again(): void {
    void this.read()
  }

  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      void this.read()
    }, quietTime)
  }

  private async read(): Promise<void> {
    const mine = ++this.reads
    try {
      const list = await readReservations(this.live.namespace, this.path, this.span.from, this.span.until)
      const series = list.some(r => r.series) ? await this.readSeries() : new Map<string, Reservation>()
      if (mine !== this.reads) return
      this.list = list
      this.series = series
      this.error = ''
    } catch (e) {
      if (mine !== this.reads) return
      const problem = problemOf(e)
      this.error = problem.message
      this.list = undefined
      if (problem.transient) setTimeout(() => void (mine === this.reads && this.read()), 2_000)
    }
  }

  private async readSeries(): Promise<Map<string, Reservation>> {
    const found = new Map<string, Reservation>()
    let after: string | undefined
    do {
      const page = await api.series(this.live.namespace, after)
      for (const s of page.items) found.set(s.id, s)
      after = page.next
    } while (after)
    return found
  }
}
