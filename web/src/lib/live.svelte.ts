// What a namespace holds, kept up to date by the shared stream. Renewals are no events, so the rows that can be seen
// are read again before their time runs out.
import { api, problemOf, type Problem } from './api'
import { clock } from './clock.svelte'
import type { Update } from './follow'
import { apply, fadeTime, put, readAgain, sweep, type Rows } from './rows'
import { follow } from './stream'
import { moment } from './time'
import type { Event, Resource } from './types'

export type Status = 'connecting' | 'loading' | 'live' | 'broken' | 'failed'

const stripLength = 100
const readers = 3 // requests at a time: the browser has six connections, and people click too

export class Live {
  readonly rows: Rows = new Map()
  /** version is another one each time that rows have changed. */
  version = $state(0)
  status = $state<Status>('connecting')
  /** since when the stream has been broken, on the browser's clock. */
  brokenSince = $state(0)
  brokenBy = $state('')
  /** why the namespace cannot be shown, if it is not for now. */
  failure = $state.raw<Problem | undefined>()
  /** the newest events, newest first. */
  strip = $state.raw<Event[]>([])
  /** moves when an alarm was raised or cleared. */
  alarms = $state(0)

  private visible: string[] = []
  private due = new Map<string, number>() // when to read a row again, on the server's clock
  private reading = new Set<string>()
  private early: Event[] | undefined // what happens while everything is read
  private listeners = new Set<(events: Event[]) => void>()
  private loads = 0
  private pausedUntil = 0
  private stops: (() => void)[] = []

  constructor(readonly namespace: string) {
    this.stops.push(follow(namespace, update => this.take(update)))
    const timer = setInterval(() => this.turn(), 250)
    this.stops.push(() => clearInterval(timer))
  }

  stop(): void {
    this.loads++
    for (const stop of this.stops) stop()
  }

  /** onEvents calls a function with what happens, until the function that it returns is called. */
  onEvents(listen: (events: Event[]) => void): () => void {
    this.listeners.add(listen)
    return () => this.listeners.delete(listen)
  }

  /** look says which rows can be seen. */
  look(resources: string[]): void {
    this.visible = resources
  }

  /** refresh reads a resource again now, and returns it. */
  async refresh(resource: string): Promise<Resource> {
    const { value, revision } = await api.resource(this.namespace, resource)
    this.calibrate(value)
    if (put(this.rows, value, revision)) this.version++
    this.plan(resource)
    return value
  }

  private take(update: Update): void {
    switch (update.type) {
      case 'open':
        if (update.time && update.heard) clock.set(update.time, update.heard)
        clock.thaw()
        if (update.fresh || this.status === 'connecting' || this.status === 'failed') void this.load()
        else if (this.status === 'broken') this.resume()
        return
      case 'broken':
        return this.broke(update.since, update.status, update.detail)
      case 'events':
        return this.happened(update.events)
    }
  }

  private broke(since: number, status: number, detail: string): void {
    this.loads++ // a list that is under way may have missed something
    this.brokenSince = since
    this.brokenBy = detail
    if (status === 401) void api.whoami().catch(() => undefined) // leads to the sign-in page
    if (this.status !== 'failed') this.status = 'broken'
    clock.freeze()
  }

  // resume goes on after a break that the stream has bridged. What was renewed meanwhile has to be read.
  private resume(): void {
    if (this.early !== undefined) return void this.load()
    this.status = 'live'
    this.due.clear()
  }

  private async load(): Promise<void> {
    const load = ++this.loads
    this.early = []
    this.status = 'loading'
    const seen = new Set<string>()
    try {
      for (let after: string | undefined, first = true; first || after; first = false) {
        const page = await api.resources(this.namespace, after)
        if (load !== this.loads) return
        for (const resource of page.value.items) {
          seen.add(resource.resource)
          put(this.rows, resource, page.revision)
        }
        this.calibrate(page.value.items.find(r => r.holders[0]?.expires))
        after = page.value.next
        this.version++
      }
    } catch (e) {
      if (load === this.loads) this.failed(problemOf(e))
      return
    }
    for (const name of this.rows.keys()) if (!seen.has(name)) this.rows.delete(name)
    this.failure = undefined
    this.status = 'live'
    const early = this.early
    this.early = undefined
    this.due.clear()
    this.happened(early)
    this.version++
  }

  private failed(problem: Problem): void {
    if (problem.transient) {
      this.brokenBy = problem.message
      this.brokenSince ||= Date.now()
      this.status = 'broken'
    } else {
      this.failure = problem
      this.status = 'failed'
    }
    const load = this.loads
    setTimeout(() => void (load === this.loads && this.load()), problem.transient ? 1_000 : 10_000)
  }

  private happened(events: Event[]): void {
    if (this.early) {
      for (const e of events) this.early.push(e)
      return
    }
    let changed = false
    const shown: Event[] = []
    for (const e of events) {
      if (apply(this.rows, e)) {
        changed = true
        this.due.set(e.resource!, 0)
      }
      if (e.kind === 'alarmed' || e.kind === 'alarm cleared') this.alarms++
      if (isShown(e)) shown.push(e)
    }
    if (shown.length > 0) this.strip = [...shown.reverse(), ...this.strip].slice(0, stripLength)
    if (changed) this.version++
    for (const listen of this.listeners) listen(events)
  }

  // turn does what time demands: rows that have faded go, rows whose time comes are read again.
  private turn(): void {
    if (this.status !== 'live') return
    const now = clock.read()
    if (sweep(this.rows, now)) this.version++
    if (document.visibilityState !== 'visible' || Date.now() < this.pausedUntil) return
    for (const name of this.visible) {
      if (this.reading.size >= readers) return
      const row = this.rows.get(name)
      if (!row || row.gone !== undefined || this.reading.has(name)) continue
      const due = this.due.get(name) ?? this.plan(name)
      if (due <= now) void this.reread(name)
    }
    this.readHidden()
  }

  // What cannot be seen is completed too, one row at a time: the totals and filters count it.
  private readHidden(): void {
    if (this.reading.size > 0) return
    for (const [name, due] of this.due) {
      if (due !== 0) continue
      const row = this.rows.get(name)
      if (row?.thin && row.gone === undefined) return void this.reread(name)
      this.due.delete(name)
    }
  }

  private async reread(name: string): Promise<void> {
    this.reading.add(name)
    try {
      await this.refresh(name)
    } catch {
      this.pausedUntil = Date.now() + 2_000
    } finally {
      this.reading.delete(name)
    }
  }

  private plan(name: string): number {
    const row = this.rows.get(name)
    if (!row) {
      this.due.delete(name)
      return Infinity
    }
    const now = clock.read()
    const due = row.thin ? 0 : now + readAgain(row, now)
    this.due.set(name, due)
    return due
  }

  // An answer says when a lease ends and how much is left: that is the server's clock.
  private calibrate(resource: Resource | undefined): void {
    const lease = resource?.holders[0]
    const expires = moment(lease?.expires)
    if (expires !== undefined && lease?.remaining_ms != null && lease.remaining_ms > 0)
      clock.set(expires - lease.remaining_ms)
  }
}

const shownKinds = new Set(['queued', 'acquired', 'changed', 'breaking', 'ended', 'left', 'asked', 'acknowledged', 'alarmed'])

const isShown = (e: Event): boolean => shownKinds.has(e.kind)

export { fadeTime }
