// The timeline: what was and is held becomes bars in lanes.
import { isUnclean, type Rows } from './rows'
import { moment } from './time'
import type { Hold } from './types'

export interface Bar {
  key: string
  resource: string
  holder: string
  token: number
  /** since when the holder waited; the same as from if it did not. */
  waited: number
  /** waiting has a beginning of its own and no hold yet: from is then to. */
  from: number
  to: number
  how: string // empty while it goes on
  unclean: boolean
  by?: string
  reason?: string
}

export interface Lane {
  name: string
  tracks: Bar[][] // bars of one track do not overlap
}

export type By = 'resource' | 'holder'

const keyOf = (resource: string, id: string, token: number): string => JSON.stringify([resource, id, token])

/** pastBar is a hold that is over. */
export function pastBar(h: Hold): Bar {
  const from = moment(h.since) ?? 0
  return {
    key: keyOf(h.resource, h.id, h.token), resource: h.resource, holder: h.holder, token: h.token,
    waited: from - (h.waited_ms ?? 0), from, to: moment(h.until) ?? from,
    how: h.how, unclean: isUnclean(h.how), by: h.by, reason: h.reason,
  }
}

/** liveBars are the holds that go on, and those who wait. */
export function liveBars(rows: Rows, now: number): Bar[] {
  const bars: Bar[] = []
  for (const row of rows.values()) {
    if (row.gone !== undefined) continue
    for (const l of row.holders) {
      const from = moment(l.acquired) ?? now
      bars.push({
        key: keyOf(row.resource, l.id, l.token), resource: row.resource, holder: l.holder, token: l.token,
        waited: from, from, to: Math.max(now, from), how: '', unclean: false, reason: l.reason,
      })
    }
    for (const w of row.queue ?? []) {
      const since = moment(w.since) ?? now
      bars.push({
        key: keyOf(row.resource, w.id, 0), resource: row.resource, holder: w.holder, token: 0,
        waited: since, from: Math.max(now, since), to: Math.max(now, since), how: '', unclean: false, reason: w.reason,
      })
    }
  }
  return bars
}

/** merge puts past and present together: what has ended is not shown as going on. */
export function merge(past: Iterable<Bar>, present: Bar[]): Bar[] {
  const bars = new Map<string, Bar>()
  for (const bar of present) bars.set(bar.key, bar)
  for (const bar of past) bars.set(bar.key, bar)
  return [...bars.values()]
}

/** The longest time that fit returns. */
export const longestFit = 1_800_000

const fits = [60_000, 120_000, 300_000, 600_000, longestFit]

/** fit returns how long back to look to see everything that began in the last half hour. */
export function fit(bars: Bar[], now: number): number {
  let first = now
  for (const bar of bars) first = Math.min(first, bar.waited)
  return fits.find(f => now - first <= f * 0.98) ?? longestFit
}

/** toLanes sorts bars that touch a stretch of time into lanes; those used last come first. */
export function toLanes(bars: Bar[], by: By, from: number, to: number): Lane[] {
  const groups = new Map<string, Bar[]>()
  for (const bar of bars) {
    if (bar.to < from || bar.waited > to) continue
    const name = by === 'holder' ? bar.holder : bar.resource
    const group = groups.get(name)
    if (group) group.push(bar)
    else groups.set(name, [bar])
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, group]) => ({ name, tracks: pack(group) }))
}

// pack gives each bar the first track where it overlaps nothing. Who waits does not take a track from who holds.
function pack(bars: Bar[]): Bar[][] {
  const tracks: Bar[][] = []
  const ends: number[] = []
  const held = bars.filter(b => b.to > b.from || b.how).sort((a, b) => a.from - b.from || a.to - b.to)
  const waiting = bars.filter(b => !(b.to > b.from || b.how)).sort((a, b) => a.waited - b.waited)
  for (const bar of [...held, ...waiting]) {
    const begins = bar.to > bar.from ? bar.from : bar.waited
    let track = ends.findIndex(end => end <= begins)
    if (track < 0) track = tracks.push([]) - 1
    tracks[track]!.push(bar)
    ends[track] = Math.max(bar.to, bar.from, begins + 1)
  }
  return tracks
}

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
].map(s => s * 1_000)

/** ticks are the moments that the axis names: whole ones of the local clock, at most so many. */
export function ticks(from: number, to: number, most: number): number[] {
  const step = steps.find(s => (to - from) / s <= most) ?? steps.at(-1)!
  const zone = new Date(from).getTimezoneOffset() * 60_000
  const found: number[] = []
  for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to; t += step) found.push(t)
  return found
}

/** heldAt are the bars of a moment, by resource. */
export function heldAt(bars: Bar[], at: number): Bar[] {
  return bars
    .filter(b => b.waited <= at && at < Math.max(b.to, b.from + 1))
    .sort((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : a.from - b.from))
}
