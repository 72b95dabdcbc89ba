import { expect, test } from 'vitest'
import { breakCommand, command } from '../src/lib/cli'
import { keyOf } from '../src/lib/commands.svelte'
import { diff } from '../src/lib/diff'
import { find } from '../src/lib/find'
import { warningsOf } from '../src/lib/health.svelte'
import { median } from '../src/lib/numbers.svelte'
import { say } from '../src/lib/say'
import type { Cluster } from '../src/lib/types'
import { event, lease, row } from './make'

const text = (from: string, to: string) => diff(from, to).map(l => l.sign + l.text).join('\n')

test('equal texts have no difference', () => expect(diff('a\nb', 'a\nb')).toEqual([]))
test('lines that were added, removed and changed', () => {
  expect(text('a\nb\nc', 'a\nb\nx\nc')).toBe(' a\n b\n+x\n c')
  expect(text('a\nb\nc', 'a\nc')).toBe(' a\n-b\n c')
  expect(text('a\nb\nc', 'a\nB\nc')).toBe(' a\n-b\n+B\n c')
  expect(text('', 'a')).toBe('-\n+a')
})
test('what is far from a change is left out', () => {
  const many = Array.from({ length: 100 }, (_, i) => `line ${i}`)
  const other = [...many]
  other[50] = 'other'
  expect(text(many.join('\n'), other.join('\n'))).toBe(
    ['…47 lines', ' line 47', ' line 48', ' line 49', '-line 50', '+other', ' line 51', ' line 52', ' line 53', '…46 lines'].join('\n'))
})
test('a difference leads from one text to the other', () => {
  let seed = 3
  const next = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n
  for (let i = 0; i < 300; i++) {
    const make = () => Array.from({ length: next(12) }, () => 'abc'[next(3)]!)
    const [a, b] = [make(), make()]
    const lines = diff(a.join('\n'), b.join('\n')).filter(l => l.sign !== '…')
    if (lines.length === 0) continue
    const folded = diff(a.join('\n'), b.join('\n')).some(l => l.sign === '…')
    if (folded) continue
    expect(lines.filter(l => l.sign !== '+').map(l => l.text).join('\n')).toBe(a.join('\n'))
    expect(lines.filter(l => l.sign !== '-').map(l => l.text).join('\n')).toBe(b.join('\n'))
  }
})
test('two texts with nothing in common take no time', () => {
  const make = (c: string) => Array.from({ length: 4_000 }, (_, i) => c + i).join('\n')
  expect(diff(make('a'), make('b'))).toHaveLength(8_000)
})

const home = { origin: 'http://127.0.0.1:4653', namespace: 'default' }
const away = { origin: 'https://leases.example', namespace: 'prod' }

test('commands name the server and the namespace if they have to', () => {
  expect(command(home, 'describe', 'a/b')).toBe('leasehold describe a/b')
  expect(command(away, 'describe', "it's")).toBe(`leasehold describe 'it'\\''s' -N prod --server https://leases.example`)
})
test('a break names what the dialog chose', () => {
  const base = { resource: 'gpu', several: false, reason: 'host is gone' }
  expect(breakCommand(home, { ...base, id: 'x' })).toBe(`leasehold break gpu --reason 'host is gone'`)
  expect(breakCommand(home, { ...base, id: 'x', several: true, period: '30s' })).toBe(`leasehold break gpu --id x --period 30s --reason 'host is gone'`)
  expect(breakCommand(home, { ...base, several: true, period: '0s' })).toBe(`leasehold break gpu --all --now --reason 'host is gone'`)
})

test('events are sentences', () => {
  expect(say(event('ended', 1, { how: 'expired' }))).toMatchObject({ text: 'lost', more: ': expired without release', bad: true })
  expect(say(event('ended', 1, { how: 'broken', by: 'bob', reason: 'stuck' })).more).toBe(': broken by bob: stuck')
  expect(say(event('ended', 1, { how: 'released' })).bad).toBe(false)
})

test('the palette finds what begins with the text first', () => {
  const rows = [row('a/prod', { holders: [lease('prod-bot')] }), row('prod/db'), row('x')]
  const run = () => undefined
  expect(find('prod', { commands: [{ name: 'Go to production', run }], rows, namespaces: ['prod'] }).map(f => f.name))
    .toEqual(['prod', 'prod/db', 'prod-bot', 'Go to production', 'a/prod'])
  expect(find('', { commands: [{ name: 'A', run }], rows, namespaces: [] })).toHaveLength(1)
})

test('keys with modifiers are the browser’s, but for Ctrl-K', () => {
  const press = (key: string, more = {}) => keyOf({ key, ctrlKey: false, metaKey: false, altKey: false, ...more })
  expect(press('j')).toBe('j')
  expect(press('k', { metaKey: true })).toBe('Ctrl-K')
  expect(press('r', { ctrlKey: true })).toBe('')
})

test('the median of nothing is nothing', () => {
  expect(median([])).toBeUndefined()
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 2, 3])).toBe(2)
})

test('a server that grants nothing says why, and what to do', () => {
  const server = { id: 1, name: 'n1', peer: '', voter: true, reachable: true, answered: true }
  const well: Cluster = { cluster: 'x', self: 'n1', leader: 'n1', term: 2, confirmed: true, level: 4, servers: [server] }
  expect(warningsOf(well)).toEqual([])
  expect(warningsOf({ ...well, quarantine: { active: true, remaining: '4m' } })[0]).toMatchObject({ kind: 'quarantine' })
  const away = { ...server, name: 'n2', reachable: false }
  expect(warningsOf({ ...well, leader: undefined, confirmed: false, servers: [server, away] })[0]!.todo).toContain('n2')
  expect(warningsOf({ ...well, servers: [{ ...server, low_room: true }] })[0]!.text).toContain('disk of n1')
})
