import { expect, test } from 'vitest'
import type { Row, Rows } from '../src/lib/rows'
import { Order, parseSort, formatSort } from '../src/lib/sort'
import { clientName, hue, plain, shell, short } from '../src/lib/text'
import { formatClock, formatDuration, formatLeft, moment, parseDuration } from '../src/lib/time'
import { lease, row } from './make'

test.each([
  ['30s', 30_000], ['1h30m', 5_400_000], ['2d', 172_800_000], ['500ms', 500], ['1m0.5s', 60_500], ['0', 0], ['0s', 0],
  ['', undefined], ['30', undefined], ['s', undefined], ['1h x', undefined], ['x1h', undefined], ['-5s', undefined],
])('parseDuration(%j) = %s', (text, ms) => expect(parseDuration(text)).toBe(ms))

test.each([
  [0, '0ms'], [450, '450ms'], [4_200, '4.2s'], [5_000, '5s'], [59_999, '59s'], [60_000, '1m 0s'], [410_000, '6m 50s'],
  [3_600_000, '1h 0m'], [90_000_000, '1d 1h'], [-5, '0s'],
])('formatDuration(%s) = %s', (ms, text) => expect(formatDuration(ms)).toBe(text))

test.each([[0, '0s'], [-1, '0s'], [99, '0.0s'], [4_990, '4.9s'], [5_000, '5s'], [5_999, '5s'], [61_400, '1m 1s']])(
  'formatLeft(%s) = %s', (ms, text) => expect(formatLeft(ms)).toBe(text))

test('the date is shown if it is another day', () => {
  const at = new Date(2026, 2, 1, 14, 2, 11).getTime()
  expect(formatClock(at, at + 1_000)).toBe('14:02:11')
  expect(formatClock(at, at + 86_400_000)).toBe('2026-03-01 14:02:11')
  expect(moment('nonsense')).toBeUndefined()
})

test('names cannot hide or turn text', () => {
  expect(plain('a\u202eb\nc\u200bd\u0007')).toBe('a\\u202eb\\u000ac\\u200bd\\u0007')
  expect(plain('grün 日本 عربي <b>')).toBe('grün 日本 عربي <b>')
  expect(short('a'.repeat(1024), 20)).toHaveLength(20)
  expect(short('abcdefghij', 7)).toBe('abc…hij')
})

test('a holder has one colour', () => {
  expect(hue('ci/deploy-881')).toBe(hue('ci/deploy-881'))
  const hues = new Set(Array.from({ length: 100 }, (_, i) => Math.floor(hue(`worker-${i}`) / 36)))
  expect(hues.size).toBe(10)
})

test('words are quoted for the shell', () => {
  expect(shell('prod/db')).toBe('prod/db')
  expect(shell("it's $HOME")).toBe(`'it'\\''s $HOME'`)
  expect(shell('')).toBe(`''`)
})

test('rows are sorted, and what is equal by name', () => {
  const rows = [
    row('b', { holders: [lease('x', { expires: '2026-03-01T04:30:09.000Z' })] }),
    row('c', { waiting: 2, holders: [lease('x', { expires: null })] }),
    row('a', { holders: [lease('x', { expires: '2026-03-01T04:30:09.000Z' })] }),
  ]
  const all = new Map(rows.map(r => [r.resource, r]))
  const names = (sort: string) => new Order(parseSort(sort), () => true).update(all).map(r => r.resource).join('')
  expect(names('')).toBe('abc')
  expect(names('left')).toBe('abc')
  expect(names('-left')).toBe('cab')
  expect(names('waiting')).toBe('cab')
  expect(names('-resource')).toBe('cba')
  for (const s of ['', 'left', '-left']) expect(formatSort(parseSort(s))).toBe(s)
  expect(formatSort(parseSort('-nonsense'))).toBe('')
})

test('an order stays right while rows come, change and go', () => {
  let seed = 7
  const next = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n
  const keeps = (r: Row) => r.waiting !== 3
  for (const sort of ['', '-resource', 'waiting', '-waiting'].map(parseSort)) {
    const rows: Rows = new Map()
    const order = new Order(sort, keeps)
    for (let i = 0; i < 200; i++) {
      for (let n = next(4); n > 0; n--) {
        const name = 'r' + next(40)
        if (next(3) === 0) rows.delete(name)
        else rows.set(name, row(name, { waiting: next(5) }))
      }
      const names = (list: Row[]) => list.map(r => `${r.resource}:${r.waiting}`)
      expect(names(order.update(rows))).toEqual(names(new Order(sort, keeps).update(new Map([...rows].reverse()))))
    }
  }
})

test('what clients say of themselves is shortened', () => {
  const tail = 'AppleWebKit/537.36 (KHTML, like Gecko)'
  for (const [agent, name] of [
    [`Mozilla/5.0 (X11; Linux x86_64) ${tail} Chrome/150.0.7871.181 Safari/537.36`, 'Chrome 150'],
    [`Mozilla/5.0 (X11; Linux x86_64) ${tail} HeadlessChrome/150.0.0.0 Safari/537.36`, 'Headless Chrome 150'],
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${tail} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`, 'Edge 140'],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0', 'Firefox 142'],
    ['Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15', 'Safari 18'],
    ['Mozilla/5.0 (compatible; thing)', 'browser'],
    ['Terraform/1.9.5 (+https://www.terraform.io)', 'Terraform/1.9.5'],
    ['leasehold/v0.1.0', 'leasehold/v0.1.0'],
  ] as const) expect(clientName(agent)).toBe(name)
})
