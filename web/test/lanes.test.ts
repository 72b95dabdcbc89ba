import { describe, expect, it } from 'vitest'
import { fit, heldAt, liveBars, merge, pastBar, ticks, toLanes, type Bar } from '../src/lib/lanes'
import type { Rows } from '../src/lib/rows'
import type { Hold } from '../src/lib/types'

const at = (s: number) => new Date(s * 1_000).toISOString()
const hold = (resource: string, holder: string, from: number, to: number, more: Partial<Hold> = {}): Hold => ({
  namespace: 'default', resource, id: holder + from, holder, token: from, since: at(from), until: at(to), waited_ms: 0, how: 'released', ...more,
})

describe('lanes', () => {
  it('looks back as far as there is something to see, up to half an hour', () => {
    const from = (s: number) => fit([pastBar(hold('x', 'a', s, 10_000)), pastBar(hold('x', 'b', 9_995, 9_996))], 10_000_000)
    expect(fit([], 0)).toBe(60_000)
    expect([9_990, 9_930, 9_500, 8_300, 10].map(from)).toEqual([60_000, 120_000, 600_000, 1_800_000, 1_800_000])
  })

  it('gives holds that overlap tracks of their own', () => {
    const bars = [hold('pool', 'a', 10, 20), hold('pool', 'b', 15, 30), hold('pool', 'c', 20, 40)].map(pastBar)
    const [lane] = toLanes(bars, 'resource', 0, 50_000)
    expect(lane!.tracks.map(t => t.map(b => b.holder))).toEqual([['a', 'c'], ['b']])
  })

  it('groups by holder, and leaves out what is outside', () => {
    const bars = [hold('x', 'ann', 10, 20), hold('y', 'ann', 12, 14), hold('z', 'bob', 100, 110)].map(pastBar)
    expect(toLanes(bars, 'holder', 0, 50_000).map(l => [l.name, l.tracks.length])).toEqual([['ann', 2]])
  })

  it('marks an end that the holder did not ask for', () => {
    expect(pastBar(hold('x', 'ann', 1, 2, { how: 'expired' })).unclean).toBe(true)
    expect(pastBar(hold('x', 'ann', 1, 2)).unclean).toBe(false)
  })

  it('begins to wait before it holds', () => {
    const bar = pastBar(hold('x', 'ann', 10, 20, { waited_ms: 4_000 }))
    expect([bar.waited, bar.from]).toEqual([6_000, 10_000])
    expect(toLanes([bar], 'resource', 7_000, 8_000)).toHaveLength(1)
  })

  it('does not show what has ended as going on', () => {
    const lease = { id: 'ann10', holder: 'ann', token: 10, acquired: at(10), expires: at(60) }
    const rows = new Map([['x', { resource: 'x', holders: [lease], waiting: 0 }]]) as unknown as Rows
    const bars = merge([pastBar(hold('x', 'ann', 10, 20))], liveBars(rows, 30_000))
    expect(bars.map(b => b.to)).toEqual([20_000])
  })

  it('names whole moments', () => {
    const named = ticks(61_000, 1_861_000, 6)
    expect(named.length).toBeLessThanOrEqual(7)
    expect(named.every(t => t % 300_000 === 0)).toBe(true)
  })

  it('knows who held what at a moment', () => {
    const bars: Bar[] = [hold('b', 'bob', 10, 20), hold('a', 'ann', 5, 12), hold('a', 'eve', 12, 30)].map(pastBar)
    expect(heldAt(bars, 12_000).map(b => [b.resource, b.holder])).toEqual([['a', 'eve'], ['b', 'bob']])
  })
})
