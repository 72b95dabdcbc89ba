import { describe, expect, test } from 'vitest'
import { apply, ends, fadeTime, put, readAgain, sweep, totals, type Rows } from '../src/lib/rows'
import { event, lease, row } from './make'

const at = Date.parse('2026-03-01T04:30:00.000Z')

describe('events change rows', () => {
  test('a grant makes a row, which lacks what events do not say', () => {
    const rows: Rows = new Map()
    expect(apply(rows, event('acquired', 2, { token: 7, until: '2026-03-01T04:30:30.000Z' }))).toBe(true)
    expect(rows.get('x')).toMatchObject({ state: 'leased', thin: true, holders: [{ holder: 'ann', token: 7 }], revision: 2 })
    expect(ends(rows.get('x')!)).toBe(at + 30_000)
  })

  test('a release fades, and is gone after two seconds', () => {
    const rows: Rows = new Map([['x', row('x', { holders: [lease('ann', { id: 'a' })] })]])
    apply(rows, event('ended', 2, { how: 'released' }))
    expect(rows.get('x')).toMatchObject({ state: 'available', gone: at })
    expect(totals(rows)).toEqual({ held: 0, waiting: 0 })
    expect(sweep(rows, at + fadeTime - 1)).toBe(false)
    expect(sweep(rows, at + fadeTime)).toBe(true)
    expect(rows.size).toBe(0)
  })

  test('a row that fades and is acquired again stays', () => {
    const rows: Rows = new Map([['x', row('x', { holders: [lease('ann', { id: 'a' })] })]])
    apply(rows, event('ended', 2, { how: 'released' }))
    apply(rows, event('acquired', 3, { id: 'b', holder: 'bob' }))
    expect(sweep(rows, at + 60_000)).toBe(false)
    expect(rows.get('x')).toMatchObject({ state: 'leased', holders: [{ holder: 'bob' }] })
  })

  test.each([['expired', 'expired'], ['session expired', 'expired'], ['hold limit', 'expired'], ['broken', 'broken']])(
    '%s leaves a row that is %s', (how, state) => {
      const rows: Rows = new Map([['x', row('x', { holders: [lease('ann', { id: 'a' })] })]])
      apply(rows, event('ended', 2, { how }))
      expect(rows.get('x')).toMatchObject({ state, holders: [], last: { holder: 'ann', how } })
      expect(sweep(rows, at + 60_000)).toBe(false)
    })

  test('the next in the queue is granted at the same revision', () => {
    const rows: Rows = new Map([['x', row('x', { waiting: 2, holders: [lease('ann', { id: 'a' })] })]])
    apply(rows, event('ended', 5, { how: 'released' }))
    apply(rows, event('acquired', 5, { n: 1, id: 'b', holder: 'bob' }))
    expect(rows.get('x')).toMatchObject({ waiting: 1, state: 'leased', holders: [{ holder: 'bob' }] })
  })

  test('of several holders one ends', () => {
    const rows: Rows = new Map([['x', row('x', { holders: [lease('ann', { id: 'a' }), lease('bob', { id: 'b' })] })]])
    apply(rows, event('ended', 2, { how: 'expired' }))
    expect(rows.get('x')).toMatchObject({ state: 'leased', holders: [{ holder: 'bob' }] })
  })

  test('who stops waiting is counted out, and the row that was only waited for goes', () => {
    const rows: Rows = new Map()
    apply(rows, event('queued', 2))
    expect(totals(rows)).toEqual({ held: 0, waiting: 1 })
    apply(rows, event('left', 3))
    expect(rows.get('x')?.gone).toBe(at)
  })

  test('a break shows when it ends', () => {
    const rows: Rows = new Map([['x', row('x', { holders: [lease('ann', { id: 'a' })] })]])
    apply(rows, event('breaking', 2, { until: '2026-03-01T04:30:05.000Z' }))
    expect(rows.get('x')).toMatchObject({ state: 'breaking', holders: [{ state: 'breaking' }] })
    expect(ends(rows.get('x')!)).toBe(at + 5_000)
  })

  test('records and sessions change no row', () => {
    const rows: Rows = new Map()
    for (const kind of ['put', 'deleted', 'session opened', 'alarmed', 'defined'] as const)
      expect(apply(rows, event(kind, 2))).toBe(false)
    expect(rows.size).toBe(0)
  })
})

describe('what is read and what happens meet', () => {
  test('an event that the answer has already seen is dropped', () => {
    const rows: Rows = new Map()
    put(rows, row('x', { waiting: 1 }), 10)
    expect(apply(rows, event('queued', 10))).toBe(false)
    expect(apply(rows, event('queued', 9))).toBe(false)
    expect(apply(rows, event('queued', 11))).toBe(true)
    expect(rows.get('x')!.waiting).toBe(2)
  })

  test('an answer that is older than the row is dropped', () => {
    const rows: Rows = new Map()
    apply(rows, event('acquired', 10))
    expect(put(rows, row('x', { holders: [] }), 9)).toBe(false)
    expect(rows.get('x')!.holders).toHaveLength(1)
    expect(put(rows, row('x', { holders: [lease('ann', { id: 'a', door: 'native' })] }), 10)).toBe(true)
    expect(rows.get('x')).toMatchObject({ thin: false, holders: [{ door: 'native' }] })
  })

  test('a resource that is free and that nobody waits for is no row', () => {
    const rows: Rows = new Map([['x', row('x')]])
    expect(put(rows, row('x', { state: 'available' }), 10)).toBe(true)
    expect(rows.size).toBe(0)
  })

  test('a row is never changed in place', () => {
    const first = Object.freeze(row('x', { holders: Object.freeze([lease('ann', { id: 'a' })]) as never }))
    const rows: Rows = new Map([['x', first]])
    apply(rows, event('queued', 2))
    apply(rows, event('ended', 3, { how: 'released' }))
    expect(rows.get('x')).not.toBe(first)
  })
})

describe('a row is read again', () => {
  test('before its time runs out', () => {
    const near = row('x', { holders: [lease('ann', { expires: '2026-03-01T04:30:04.000Z' })] })
    expect(readAgain(near, at)).toBe(2_000)
  })
  test('not more often than makes sense', () => {
    const over = row('x', { holders: [lease('ann', { expires: '2026-03-01T04:29:00.000Z' })] })
    expect(readAgain(over, at)).toBe(300)
  })
  test('every quarter of a minute at least', () => {
    expect(readAgain(row('x', { holders: [lease('ann', { expires: null })] }), at)).toBe(15_000)
  })
})
