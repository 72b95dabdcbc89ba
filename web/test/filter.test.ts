import { describe, expect, test } from 'vitest'
import { isError, parseFilter } from '../src/lib/filter'
import type { Row } from '../src/lib/rows'
import { lease, row } from './make'

const now = Date.parse('2026-03-01T04:30:00Z')
const inSeconds = (s: number) => new Date(now + s * 1_000).toISOString()

const rows: Row[] = [
  row('prod/db', { waiting: 3, holders: [lease('ci/deploy-881', { expires: inSeconds(4), door: 'terraform', labels: { team: 'ml' } })] }),
  row('gpu/h100', { holders: [lease('alice@laptop', { units: ['gpu0'], expires: inSeconds(3_600), acquired: inSeconds(-600) }), lease('ci/plan-204', { expires: null })] }),
  row('maintenance', { holders: [lease('ann', { expires: null, reason: 'disk replacement' })] }),
  row('cron/nightly', { state: 'expired', last: { id: 'x', holder: 'ci/deploy-88', token: 9, how: 'expired', at: inSeconds(-5) } }),
  row('repo/web:src', { holders: [lease('agent', { state: 'breaking' })], state: 'breaking' }),
]

function found(text: string): string[] {
  const filter = parseFilter(text)
  if (isError(filter)) throw new Error(filter.error)
  return rows.filter(r => filter.match(r, now)).map(r => r.resource)
}

const wrong = (text: string): string => {
  const filter = parseFilter(text)
  return isError(filter) ? filter.error : ''
}

describe('a filter finds', () => {
  test.each([
    ['', ['prod/db', 'gpu/h100', 'maintenance', 'cron/nightly', 'repo/web:src']],
    ['prod', ['prod/db']],
    ['DEPLOY', ['prod/db', 'cron/nightly']],
    ['holder:ci/*', ['prod/db', 'gpu/h100', 'cron/nightly']],
    ['holder:"ci/deploy-88"', ['cron/nightly']],
    ['left<10s waiting>0', ['prod/db']],
    ['left>1h', ['maintenance']],
    ['left>=1h', ['gpu/h100', 'maintenance']],
    ['held>=10m', ['gpu/h100']],
    ['state:expired', ['cron/nightly']],
    ['state:breaking', ['repo/web:src']],
    ['state:b*', ['repo/web:src']],
    ['label:team=ml', ['prod/db']],
    ['label:team', ['prod/db']],
    ['unit:gpu0', ['gpu/h100']],
    ['holders=2', ['gpu/h100']],
    ['reason:"disk replacement"', ['maintenance']],
    ['-state:leased -cron', ['repo/web:src']],
    ['!door:terraform waiting>=1', []],
    ['repo/web:src', ['repo/web:src']],
    ['"repo/web:src"', ['repo/web:src']],
    ['token=9', ['cron/nightly']],
  ])('%s', (text, names) => expect(found(text)).toEqual(names))
})

describe('what is wrong is said', () => {
  test.each([
    ['colour:red', 'unknown field "colour"; fields: resource, holder,'],
    ['size>3', 'unknown field "size"'],
    ['left<soon', 'left needs a duration such as 10s, 5m or 2h, not "soon"'],
    ['left<', 'left needs a duration'],
    ['left:10s', 'left is compared: left<10s or left>5m'],
    ['waiting>many', 'waiting needs a whole number, not "many"'],
    ['waiting:3', 'waiting is compared: waiting>0 or waiting=1'],
    ['holder<3', 'holder is text: write holder:3'],
    ['holder:', 'holder: needs a value, such as holder:ci/*'],
    ['state:lost', 'unknown state "lost"; states: available, leased'],
    ['holder:"ci', 'the quotation mark is not closed'],
    ['-left<x', 'left needs a duration'],
  ])('%s', (text, says) => expect(wrong(text)).toContain(says))

  test('with its place', () => expect(parseFilter('holder:ci/* left<x')).toMatchObject({ at: 12 }))
})

test('patterns of the user are not regular expressions', () => {
  expect(found('resource:.*')).toEqual([])
  expect(found('(')).toEqual([])
  expect(found('[*')).toEqual([])
})

test('only filters on time change by themselves', () => {
  expect(parseFilter('left<10s')).toMatchObject({ timed: true })
  expect(parseFilter('-held>1m')).toMatchObject({ timed: true })
  expect(parseFilter('holder:ci waiting>0')).toMatchObject({ timed: false })
})

test('anything that is typed gives a filter or a message', () => {
  const parts = ['holder', 'left', ':', '<', '>', '=', '"', '*', '-', '!', ' ', 'x', '10s', '\\', '(', '[', '\u202e']
  let seed = 7
  const next = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff)
  for (let i = 0; i < 3_000; i++) {
    let text = ''
    for (let n = next() % 9; n >= 0; n--) text += parts[next() % parts.length]
    const filter = parseFilter(text)
    if (isError(filter)) expect(filter.error.length).toBeGreaterThan(10)
    else for (const r of rows) filter.match(r, now)
  }
})
