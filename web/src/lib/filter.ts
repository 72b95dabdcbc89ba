// The filter language of the tables: terms with spaces between them, all of which have to match.
//
//   nightly                 text in the resource or the holder
//   holder:ci/*             * stands for any text; without it, the text is looked for anywhere; in quotes, it is exact
//   state:expired           also door, reason, label, session, id, unit, resource
//   left<10s waiting>0      also held, token, holders
//   -door:etcd              not
import { ends, type Row } from './rows'
import { moment, parseDuration } from './time'

export interface Filter {
  match(row: Row, now: number): boolean
  /** timed filters give other answers as time passes. */
  timed: boolean
}

/** A FilterError says what is wrong, and where in the text. */
export interface FilterError {
  error: string
  at: number
}

type Test = (row: Row, now: number) => boolean
type Texts = (row: Row) => (string | undefined)[]
type Number_ = (row: Row, now: number) => number

const texts: Record<string, Texts> = {
  resource: r => [r.resource],
  holder: r => (r.holders.length > 0 ? r.holders.map(l => l.holder) : [r.last?.holder]),
  door: r => r.holders.map(l => l.door),
  state: r => [r.state, ...r.holders.map(l => l.state)],
  reason: r => r.holders.map(l => l.reason),
  session: r => r.holders.map(l => l.session),
  id: r => r.holders.map(l => l.id),
  unit: r => r.holders.flatMap(l => l.units ?? []),
  label: r => r.holders.flatMap(l => Object.entries(l.labels ?? {}).flatMap(([k, v]) => [`${k}=${v}`, k])),
}

// These have few values, which are written whole.
const words = new Set(['state', 'door', 'label'])

const states = ['available', 'leased', 'breaking', 'broken', 'expired']

const durations: Record<string, Number_> = {
  left: (r, now) => (r.holders.length === 0 ? NaN : ends(r) - now),
  held: (r, now) => now - Math.min(...r.holders.map(l => moment(l.acquired) ?? now)),
}

const numbers: Record<string, Number_> = {
  waiting: r => r.waiting,
  holders: r => r.holding ?? r.holders.length,
  token: r => Math.max(...r.holders.map(l => l.token), r.last?.token ?? 0),
}

export const textFields = Object.keys(texts)
export const numberFields = [...Object.keys(durations), ...Object.keys(numbers)]

const compares: Record<string, (a: number, b: number) => boolean> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '=': (a, b) => a === b,
}

/** parseFilter reads a filter. An empty one matches everything. */
export function parseFilter(text: string): Filter | FilterError {
  const tests: Test[] = []
  let timed = false
  for (const term of split(text)) {
    if (term.open) return { error: 'the quotation mark is not closed: add " at the end', at: term.at }
    const read = readTerm(term.text)
    if ('error' in read) return { error: read.error, at: term.at }
    tests.push(read.test)
    timed ||= read.timed
  }
  return { match: (row, now) => tests.every(t => t(row, now)), timed }
}

export function isError(f: Filter | FilterError): f is FilterError {
  return 'error' in f
}

interface Term {
  text: string
  at: number
  open: boolean
}

function split(text: string): Term[] {
  const terms: Term[] = []
  const term = /(?:[^\s"]|"[^"]*("|$))+/g
  for (let m = term.exec(text); m; m = term.exec(text))
    terms.push({ text: m[0], at: m.index, open: (m[0].split('"').length - 1) % 2 === 1 })
  return terms
}

type Read = { test: Test; timed: boolean } | { error: string }

function readTerm(term: string): Read {
  if (term.length > 1 && (term[0] === '-' || term[0] === '!')) {
    const read = readTerm(term.slice(1))
    return 'error' in read ? read : { test: (row, now) => !read.test(row, now), timed: read.timed }
  }
  const compared = /^([a-z]+)(<=|>=|<|>|=)(.*)$/i.exec(term)
  if (compared) return readComparison(compared[1]!.toLowerCase(), compared[2]!, compared[3]!)
  const named = /^([a-z]+):(.*)$/i.exec(term)
  if (named) return readText(named[1]!.toLowerCase(), named[2]!)
  const pattern = readPattern(term, false)
  const where = [texts.resource!, texts.holder!]
  return { test: row => where.some(w => w(row).some(t => t !== undefined && pattern(t))), timed: false }
}

function readText(field: string, value: string): Read {
  const get = texts[field]
  if (!get) {
    if (durations[field] || numbers[field]) return { error: `${field} is compared: ${example(field)}` }
    return { error: `unknown field "${field}"; fields: ${fieldList()}. For text with a colon, use quotes: "${field}:…"` }
  }
  if (value === '') return { error: `${field}: needs a value, such as ${field}:${field === 'state' ? 'leased' : 'ci/*'}` }
  if (field === 'state' && !value.includes('*') && !states.includes(unquote(value)))
    return { error: `unknown state "${unquote(value)}"; states: ${states.join(', ')}` }
  const pattern = readPattern(value, words.has(field))
  return { test: row => get(row).some(t => t !== undefined && pattern(t)), timed: false }
}

function readComparison(field: string, operator: string, value: string): Read {
  const compare = compares[operator]!
  const duration = durations[field]
  if (duration) {
    const limit = parseDuration(value)
    if (limit === undefined) return { error: `${field} needs a duration such as 10s, 5m or 2h, not "${value}"` }
    return { test: (row, now) => compare(duration(row, now), limit), timed: true }
  }
  const number = numbers[field]
  if (number) {
    if (!/^\d+$/.test(value)) return { error: `${field} needs a whole number, not "${value}"` }
    return { test: (row, now) => compare(number(row, now), Number(value)), timed: false }
  }
  if (texts[field]) return { error: `${field} is text: write ${field}:${value || 'ci/*'}` }
  return { error: `unknown field "${field}"; fields: ${fieldList()}` }
}

const example = (field: string): string =>
  durations[field] ? `${field}<10s or ${field}>5m` : `${field}>0 or ${field}=1`

const fieldList = (): string => [...textFields, ...numberFields].join(', ')

const unquote = (text: string): string => text.replaceAll('"', '')

function readPattern(text: string, whole: boolean): (value: string) => boolean {
  const quoted = text.includes('"')
  const wanted = unquote(text).toLowerCase()
  if (quoted) return value => value.toLowerCase() === wanted
  if (wanted.includes('*')) {
    const parts = wanted.split('*').map(p => p.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    const pattern = new RegExp('^' + parts.join('.*') + '$', 's')
    return value => pattern.test(value.toLowerCase())
  }
  return whole ? value => value.toLowerCase() === wanted : value => value.toLowerCase().includes(wanted)
}
