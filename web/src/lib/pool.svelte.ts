// The units of one pool, kept up to date. There may be ten thousand: they are read page by page, and when something
// happens the pages that can be seen are read again first. Renewals and reports of use are no events, so what can be seen
// is also read again from time to time.
import { api, problemOf } from './api'
import type { Live } from './live.svelte'
import type { Pool, PoolUnit } from './types'

const pageSize = 500 // units
const turnTime = 250 // ms
const freshTime = 10_000 // how old what can be seen may be, in ms
const queueLength = 100

interface Page {
  after?: string
  next?: string
  units: PoolUnit[]
  read: number // when, on this browser's clock; 0: something happened since
}

export class PoolLive {
  /** head has the counts and the queue, as the page that was read last said. */
  head = $state.raw<Pool | undefined>()
  units = $state.raw<PoolUnit[]>([])
  error = $state('')
  /** complete is whether all units were read once. */
  complete = $state(false)

  private pages: Page[] = []
  private first = 0 // of the units that can be seen
  private last = 0
  private reading = false
  private anew = true
  private quietUntil = 0
  private stops: (() => void)[] = []

  constructor(
    private readonly live: Live,
    readonly path: string,
  ) {
    this.stops.push(live.onEvents(events => {
      for (const e of events) {
        if (e.resource !== path) continue
        if (e.kind === 'defined') this.anew = true // units may have come or gone
        for (const page of this.pages) page.read = 0
      }
    }))
    const timer = setInterval(() => void this.turn(), turnTime)
    this.stops.push(() => clearInterval(timer))
    void this.turn()
  }

  stop(): void {
    for (const stop of this.stops) stop()
  }

  /** look says which units can be seen, by their place in the list. */
  look(first: number, last: number): void {
    this.first = first
    this.last = last
  }

  /** again reads what can be seen once more, and then the rest. */
  again(): void {
    this.quietUntil = 0
    this.anew = true
  }

  private async turn(): Promise<void> {
    if (this.reading || this.live.status !== 'live' || document.visibilityState !== 'visible' || Date.now() < this.quietUntil) return
    this.reading = true
    try {
      if (this.anew) await this.readAll()
      else await this.readOne()
      this.error = ''
    } catch (e) {
      const problem = problemOf(e)
      this.error = problem.message
      if (problem.status === 404) ((this.head = undefined), (this.units = []), (this.pages = []))
      this.anew = true
      this.quietUntil = Date.now() + 2_000
    } finally {
      this.reading = false
    }
  }

  private async readAll(): Promise<void> {
    this.anew = false
    const pages: Page[] = []
    let next: string | undefined
    do {
      const page = await this.read(next)
      pages.push(page)
      next = page.next
      if (!this.complete) this.show(pages) // the first screen is there at once
    } while (next)
    this.show(pages)
    this.complete = true
    // Hosts that come up together define their units one by one.
    this.quietUntil = Date.now() + (pages.length > 2 ? 2_000 : 250)
  }

  // readOne reads the page that needs it most: one that can be seen, or else one in which something happened.
  private async readOne(): Promise<void> {
    const now = Date.now()
    let at = 0
    const due = this.pages.filter(page => {
      const from = at
      at += page.units.length
      return from <= this.last && at > this.first ? now - page.read > freshTime : false
    })
    const page = due[0] ?? this.pages.find(p => p.read === 0)
    if (!page) return
    const read = await this.read(page.after)
    if (read.next !== page.next) this.anew = true
    this.show(this.pages.map(p => (p === page ? read : p)))
  }

  private async read(after: string | undefined): Promise<Page> {
    const asked = Date.now()
    const pool = await api.pool(this.live.namespace, this.path, { after, limit: pageSize, queue: queueLength })
    this.head = pool
    return { after, next: pool.next, units: pool.units, read: asked }
  }

  private show(pages: Page[]): void {
    this.pages = pages
    this.units = pages.flatMap(p => p.units)
  }
}
