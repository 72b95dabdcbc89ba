// The rows of the table: how what is read and what happens change them. Rows are never changed in place, so that a
// view knows by identity what is new.
import { moment } from './time'
import type { Ending, Event, Lease, Resource, State } from './types'

export interface Row extends Resource {
  revision: number // of the newest thing that is in it
  /** thin rows were changed by events alone, which do not say everything: read them again. */
  thin: boolean
  /** since when it has been gone, on the server's clock; it is shown a little longer, and fades. */
  gone?: number
}

export type Rows = Map<string, Row>

/** How long a row that ended is still shown. */
export const fadeTime = 2_000

/** The ends that the holder did not ask for. */
const unclean = new Set(['expired', 'hold limit', 'broken', 'session expired', 'abandoned'])

export const isUnclean = (how: string): boolean => unclean.has(how)

/** put takes in a resource that was read at a revision. It returns whether the row is another one now. */
export function put(rows: Rows, resource: Resource, revision: number): boolean {
  const old = rows.get(resource.resource)
  if (old && !old.gone && old.revision > revision) return false
  if (resource.state === 'available' && resource.waiting === 0 && !resource.unacknowledged) {
    if (!old || old.gone) return false
    rows.delete(resource.resource)
    return true
  }
  rows.set(resource.resource, { ...resource, revision, thin: false })
  return true
}

/** apply takes in an event. It returns whether a row is another one now. */
export function apply(rows: Rows, e: Event): boolean {
  if (!e.resource) return false
  const old = rows.get(e.resource)
  if (old && old.revision >= e.revision && !isLater(old, e)) return false
  const next = change(old, e)
  if (!next) return false
  next.revision = e.revision
  rows.set(e.resource, next)
  return true
}

// Several events of one revision may concern one resource: the end of a lease and the grant of the next.
const isLater = (row: Row, e: Event): boolean => row.revision === e.revision && row.thin

function change(old: Row | undefined, e: Event): Row | undefined {
  const row: Row = old && !old.gone ? { ...old, thin: true } : empty(e)
  switch (e.kind) {
    case 'queued':
      row.waiting++
      return row
    case 'left':
      if (!old) return undefined
      row.waiting = Math.max(0, row.waiting - 1)
      return settle(row, e)
    case 'acquired':
      return acquired(row, e)
    case 'changed':
      row.holders = row.holders.map(l => (l.id === e.id ? { ...l, holder: e.holder ?? l.holder, token: e.token ?? l.token } : l))
      return row
    case 'breaking':
      row.holders = row.holders.map(l => (l.id === e.id ? { ...l, state: 'breaking', expires: e.until ?? l.expires } : l))
      row.state = 'breaking'
      return row
    case 'ended':
      return ended(row, e)
    case 'moved':
    case 'acknowledged':
      return old ? row : undefined
    default:
      return undefined
  }
}

function acquired(row: Row, e: Event): Row {
  const lease: Lease = {
    namespace: e.namespace, resource: row.resource, id: e.id ?? '', holder: e.holder ?? '', token: e.token ?? 0,
    floor: e.token ?? 0, state: 'leased', ttl: null, expires: e.until ?? null, remaining_ms: null, acquired: e.at,
    available_at: null, session: e.session, reason: e.reason, revision: e.revision,
  }
  row.holders = [...row.holders.filter(l => l.id !== lease.id), lease]
  row.state = 'leased'
  // Where somebody waits, nobody else is granted but those who waited.
  row.waiting = Math.max(0, row.waiting - 1)
  row.used = Math.max(row.used, row.holders.length)
  return row
}

function ended(row: Row, e: Event): Row {
  row.holders = row.holders.filter(l => l.id !== e.id)
  row.holding = undefined
  row.last = {
    id: e.id ?? '', holder: e.holder ?? '', token: e.token ?? 0, how: e.how ?? '', by: e.by, reason: e.reason, at: e.at,
  } satisfies Ending
  return settle(row, e)
}

// settle says in what state a row is after somebody left it.
function settle(row: Row, e: Event): Row {
  if (row.holders.length > 0) return row
  row.used = 0
  if (e.kind === 'ended') row.state = stateAfter(e.how ?? '')
  if (row.state === 'available' && row.waiting === 0) row.gone = moment(e.at) ?? 0
  return row
}

function stateAfter(how: string): State {
  if (how === 'broken') return 'broken'
  return isUnclean(how) ? 'expired' : 'available'
}

function empty(e: Event): Row {
  return {
    namespace: e.namespace, resource: e.resource!, state: 'available', capacity: 1, used: 0, holders: [], waiting: 0,
    last: null, available_at: null, revision: 0, thin: true,
  }
}

/** sweep removes rows that have faded. It returns whether there were any. */
export function sweep(rows: Rows, now: number): boolean {
  let any = false
  for (const [name, row] of rows) {
    if (row.gone === undefined || now - row.gone < fadeTime) continue
    rows.delete(name)
    any = true
  }
  return any
}

/** ends returns when the first of a row's leases ends by time; Infinity if none does. */
export function ends(row: Row): number {
  let first = Infinity
  for (const l of row.holders) first = Math.min(first, moment(l.expires) ?? Infinity)
  return first
}

/** readAgain returns how long after it was read a row has to be read again, to see renewals before they are due. */
export function readAgain(row: Row, now: number): number {
  if (row.holders.length === 0) return 60_000
  return Math.min(15_000, Math.max(300, (ends(row) - now) / 2))
}

export interface Totals {
  held: number
  waiting: number
}

export function totals(rows: Rows): Totals {
  const sum = { held: 0, waiting: 0 }
  for (const row of rows.values()) {
    if (row.gone !== undefined) continue
    sum.held += row.holding ?? row.holders.length
    sum.waiting += row.waiting
  }
  return sum
}
