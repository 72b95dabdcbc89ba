import { afterEach, describe, expect, it, vi } from 'vitest'
import { dayAfter, dayOf, nameOfDay, recurs, share, span, toDays } from '../src/lib/reservations'
import type { Reservation } from '../src/lib/types'

afterEach(() => void vi.unstubAllEnvs())

const reservation = (id: string, from: string, until: string, more: Partial<Reservation> = {}): Reservation => ({
  namespace: 'default', id, resource: 'gpu', holder: 'ann', state: 'planned', from, until, ...more,
})
const midnight = (text: string) => dayOf(text)!

describe('the calendar', () => {
  it('puts what overlaps on tracks of its own, and what does not on one', () => {
    vi.stubEnv('TZ', 'UTC')
    const list = [
      reservation('a', '2026-11-20T09:00:00Z', '2026-11-20T11:00:00Z'),
      reservation('b', '2026-11-20T10:00:00Z', '2026-11-20T12:00:00Z'),
      reservation('c', '2026-11-20T11:00:00Z', '2026-11-20T12:00:00Z'),
    ]
    const [day] = toDays(list, midnight('2026-11-20'), 1)
    expect(day!.tracks.map(t => t.map(p => p.of.id))).toEqual([['a', 'c'], ['b']])
  })

  it('cuts what lasts over midnight, and leaves out what only touches a day', () => {
    vi.stubEnv('TZ', 'Asia/Kolkata')
    const night = reservation('n', '2026-11-20T16:30:00Z', '2026-11-21T18:30:00Z') // 22:00 to midnight a day later
    const days = toDays([night], midnight('2026-11-19'), 5)
    expect(days.map(d => d.tracks.flat().map(p => [p.left * 24, p.right * 24]))).toEqual([[], [[22, 24]], [[0, 24]], [], []])
  })

  it('has a place for 09:00 that is the same on days on which clocks change', () => {
    vi.stubEnv('TZ', 'Europe/Berlin')
    const first = midnight('2026-10-24') // the 25th has 25 hours
    const days = toDays([
      reservation('a', '2026-10-24T07:00:00Z', '2026-10-24T09:00:00Z'),
      reservation('b', '2026-10-25T08:00:00Z', '2026-10-25T10:00:00Z'),
    ], first, 3)
    expect(days.map(d => d.tracks.flat().map(p => [p.left * 24, p.right * 24]))).toEqual([[[9, 11]], [[9, 11]], []])
    expect(days.map(d => (d.ends - d.begins) / 3_600_000)).toEqual([24, 25, 24])
    expect(nameOfDay(dayAfter(first, 14))).toBe('2026-11-07')
  })

  it('reads days, and nothing else', () => {
    expect(nameOfDay(midnight('2026-02-28'))).toBe('2026-02-28')
    expect(['', '2026-02-30', '2026-13-01', '2026-1-1', 'today', '2026-11-20T00:00:00Z'].map(dayOf)).toEqual(Array(6).fill(undefined))
  })

  it('says when, how much and how often', () => {
    vi.stubEnv('TZ', 'UTC')
    expect(span(reservation('a', '2026-11-20T09:00:00Z', '2026-11-20T11:30:00Z'))).toBe('Fri 20 Nov, 09:00 – 11:30')
    expect(span(reservation('a', '2026-11-20T22:00:00Z', '2026-11-21T00:00:00Z'))).toBe('Fri 20 Nov, 22:00 – 24:00')
    expect(span(reservation('a', '2026-11-20T22:00:00Z', '2026-11-21T06:00:00Z'))).toBe('Fri 20 Nov, 22:00 – Sat 21 Nov, 06:00')
    expect(share(reservation('a', '', ''), 'unit')).toBe('all of it')
    expect(share(reservation('a', '', '', { slots: 2, where: 'model=H100\u202e' }), 'unit')).toBe('2 units with model=H100\\u202e')
    const rule = { every: 'mon,wed', at: '09:00', zone: 'Europe/Berlin', length: '2h' }
    expect(recurs(reservation('s', '', '', { rule }))).toBe('mon,wed at 09:00, Europe/Berlin')
    expect(recurs(undefined)).toBe('')
  })
})
