import type { Row } from '../src/lib/rows'
import type { Event, Kind, Lease } from '../src/lib/types'

let ids = 0

export function lease(holder: string, more: Partial<Lease> = {}): Lease {
  return {
    namespace: 'default', resource: 'x', id: `id-${++ids}`, holder, token: 1, floor: 1, state: 'leased', ttl: '30s',
    expires: '2026-03-01T04:30:20.000Z', remaining_ms: 20_000, acquired: '2026-03-01T04:29:50.000Z', available_at: null,
    revision: 1, ...more,
  }
}

export function row(resource: string, more: Partial<Row> = {}): Row {
  return {
    namespace: 'default', resource, state: 'leased', capacity: 1, used: 1, holders: [], waiting: 0, last: null,
    available_at: null, revision: 1, thin: false, ...more,
  }
}

export function event(kind: Kind, revision: number, more: Partial<Event> = {}): Event {
  return { namespace: 'default', revision, n: 0, kind, at: '2026-03-01T04:30:00.000Z', resource: 'x', id: 'a', holder: 'ann', ...more }
}
